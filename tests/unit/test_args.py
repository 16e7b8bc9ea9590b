"""Args of operations: their defaults, checks of a payload, and the payload they write."""

from typing import Any

import pytest

from hivepipe.errors import BadEnvelopeError
from hivepipe.operations.declared import OPERATIONS
from hivepipe.operations.families.agents import InsertAgent
from hivepipe.operations.families.archive import ArchiveTranscript
from hivepipe.operations.families.history import AssignTask, RecordNotice


def test_missing_null_and_unknown_fields_give_defaults() -> None:
    args = InsertAgent.read({"agent_id": "a-1", "type": None, "of_a_later_release": 1})
    assert args == InsertAgent(agent_id="a-1")
    assert (args.type, args.tokens) == ("", None)
    hashed = InsertAgent.read({"agent_id": "sk-ant-api03-abc"})
    assert hashed.agent_id.startswith("id-"), "it looks like a token"


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "agent_id is missing"),
        ({"agent_id": ""}, "agent_id is not a valid id"),
        ({"agent_id": "../up"}, "agent_id is not a valid id"),
        ({"agent_id": 7}, "agent_id is of the wrong type: int"),
        ({"agent_id": "a-1", "tokens": True}, "tokens is of the wrong type: bool"),
        ({"agent_id": "a-1", "tokens": 1.5}, "tokens is of the wrong type: float"),
        ({"agent_id": "a-1", "type": ["x"]}, "type is of the wrong type: list"),
    ],
)
def test_a_wrong_payload_is_refused(payload: dict[str, Any], words: str) -> None:
    with pytest.raises(BadEnvelopeError, match=words):
        InsertAgent.read(payload)


def test_arguments_do_not_change() -> None:
    args = AssignTask(task_id="t-1")
    with pytest.raises(AttributeError):
        args.task_id = "t-2"  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(args)
    assert args != RecordNotice()
    assert repr(args) == "AssignTask(task_id='t-1')"


def test_unknown_and_missing_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        AssignTask(task_id="t-1", why="clear")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        InsertAgent()  # type: ignore[call-arg]


def test_a_payload_leaves_out_what_is_none() -> None:
    """The first release wrote these keys in this order, and job ids are derived from them."""
    payload = ArchiveTranscript(path="/t", kind="main", ends=True, settle_s=5).payload()
    assert [*payload] == ["path", "kind", "agent_id", "agent_type", "claude", "ends", "settle_s"]


def test_every_operation_reads_what_it_writes() -> None:
    samples = {str: "x", int: 1, list: [], dict: {}, bool: True, float: 1.5}
    for args in OPERATIONS.values():
        payload = {name: samples[kinds[0]] for name, kinds in args._types.items()}
        assert args.read(payload).payload() == payload
        assert args.read(payload) == args(**payload)
        assert 1 <= args.priority <= 10
