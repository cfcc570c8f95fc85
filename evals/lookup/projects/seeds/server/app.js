// Answers the pages of the seed library.
const express = require("express");
const { loansPerMember, requestsPerMinute } = require("./limits");

const app = express();

app.get("/catalogue", listPackets);
app.get("/healthz", (request, response) => response.send("growing"));
app.post("/loans", lendPacket);
app.post("/returns", takeBack);
app.get("/feed/new-arrivals.xml", feed);

app.use((request, response) => response.status(404).send("nothing grows here"));
app.use((error, request, response, next) => response.status(500).send("a pot fell over"));

module.exports = { app };
