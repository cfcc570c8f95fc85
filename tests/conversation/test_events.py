from __future__ import annotations

import json
import random
import unittest

from mini_agent.conversation.events import EVENT_TYPES, Event, event_from_json, event_to_json
from tests import generated


class EventsAsJson(unittest.TestCase):
    def test_every_type_of_event_survives_the_way_to_json_and_back(self) -> None:
        for seed in generated.seeds(40, 2000):
            rng = random.Random(seed)
            for kind in EVENT_TYPES:
                event = generated.any_event(rng, kind)
                with self.subTest(seed=seed, kind=kind):
                    self.assertEqual(event_from_json(json.loads(json.dumps(event_to_json(event)))), event)

    def test_an_event_that_lacks_any_one_field_is_refused_with_its_name(self) -> None:
        for kind in EVENT_TYPES:
            data = event_to_json(generated.any_event(random.Random(1), kind))
            for name in data:
                with self.subTest(kind=kind, field=name), self.assertRaisesRegex(ValueError, f"unknown type|{name}"):
                    event_from_json({key: value for key, value in data.items() if key != name})

    def test_a_field_of_any_other_type_raises_nothing_but_valueerror(self) -> None:
        for seed in generated.seeds(20, 500):
            rng = random.Random(seed)
            for kind in EVENT_TYPES:
                data = json.loads(json.dumps(event_to_json(generated.any_event(rng, kind))))
                data[rng.choice(list(data))] = generated.json_value(rng)
                with self.subTest(seed=seed, kind=kind):
                    self.assertIsInstance(_read_or_refuse(data), (ValueError, *EVENT_TYPES.values()))

    def test_a_type_that_is_no_text_is_refused(self) -> None:
        for kind in ([], {}, None, 3, "no_such_event"):
            with self.subTest(kind=kind), self.assertRaisesRegex(ValueError, "unknown type"):
                event_from_json({"type": kind})

    def test_true_is_no_number_and_1_is_no_flag(self) -> None:
        data = event_to_json(generated.any_event(random.Random(1), "tool_output_compressed"))
        with self.assertRaisesRegex(ValueError, "characters_before"):
            event_from_json({**data, "characters_before": True})
        data = event_to_json(generated.any_event(random.Random(1), "tool_result_added"))
        with self.assertRaisesRegex(ValueError, "is_error"):
            event_from_json({**data, "is_error": 1})


def _read_or_refuse(data: dict[str, object]) -> Event | ValueError:
    try:
        return event_from_json(data)
    except ValueError as error:
        return error
