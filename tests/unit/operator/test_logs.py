# SPDX-License-Identifier: Apache-2.0
"""The log's lines for machines."""

import json
import logging

from weir_operator.logs import JsonFormatter


def line(record: logging.LogRecord) -> dict[str, object]:
    text = JsonFormatter().format(record)
    assert "\n" not in text
    parsed: dict[str, object] = json.loads(text)
    return parsed


def test_a_line_holds_the_message_and_what_was_given_with_it() -> None:
    record = logging.makeLogRecord(
        {"name": "weir", "levelname": "WARNING", "msg": "%s late", "args": ("one",), "created": 0.5, "gateway": "edge"}
    )
    assert line(record) == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "warning",
        "logger": "weir",
        "message": "one late",
        "gateway": "edge",
    }


def test_a_fault_keeps_its_traceback_in_the_same_line() -> None:
    fault = ValueError("first\nsecond")
    record = logging.makeLogRecord({"msg": "failed", "exc_info": (type(fault), fault, None)})
    assert "ValueError: first\nsecond" in str(line(record)["error"])


def test_what_is_no_json_is_written_as_text() -> None:
    assert line(logging.makeLogRecord({"msg": "m", "path": {1}}))["path"] == "{1}"
