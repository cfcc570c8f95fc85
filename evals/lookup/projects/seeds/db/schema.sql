-- What the seed library remembers.
CREATE TABLE packet (
    id INTEGER PRIMARY KEY,
    variety VARCHAR(96) NOT NULL,
    harvested_on DATE NOT NULL
);

CREATE TABLE borrower (
    id INTEGER PRIMARY KEY,
    nickname VARCHAR(54) NOT NULL UNIQUE,
    joined_on DATE NOT NULL
);

CREATE TABLE outing (
    packet_id INTEGER REFERENCES packet(id),
    borrower_id INTEGER REFERENCES borrower(id),
    due_on DATE NOT NULL
);

CREATE INDEX outing_by_due ON outing (due_on);
CREATE INDEX packet_by_variety ON packet (variety);
