"""What crosses the wire comes back the same, and whatever else arrives is refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import walklearn
from tests.node.made_tokens import changed, made_token
from walklearn.node.protocol import messages_pb2 as wire
from walklearn.node.protocol.fields import (
    LARGEST_COUNTER,
    LARGEST_DEGREE,
    LONGEST_REASON,
    VERSION,
    MessageError,
)
from walklearn.node.protocol.messages import (
    Announcement,
    Greeting,
    Outcome,
    Progress,
    Receipt,
    decode_greeting,
    decode_receipt,
    encode_greeting,
    encode_receipt,
)
from walklearn.node.protocol.tokens import (
    Limits,
    Line,
    Mark,
    Token,
    decode_token,
    encode_token,
)
from walklearn.objectives.linear.domains import Ball, Box, Domain, Everywhere

SIZE, UPDATES = 3, 100
LIMITS = Limits(SIZE, UPDATES, Ball(2.0))
LINE = Line(2, 3, "ab" * 32, "cd" * 16)
TOKEN = made_token(LINE, 4, 5, np.array([1.0, -1.0, 0.5]), np.array([0.1, 0.0, 0.2]), 0.5, 4.0)
ANNOUNCEMENT = Announcement(4, 2.5, True, LINE, None)
GREETING = Greeting("node-1", "0f" * 32, ANNOUNCEMENT, "the plan")
RECEIPT = Receipt(Outcome.OBSOLETE, "why", LINE)


def hexadecimal(length: int) -> st.SearchStrategy[str]:
    return st.text("0123456789abcdef", min_size=length, max_size=length)


counts = st.integers(0, LARGEST_COUNTER)
lines = st.builds(Line, counts, st.integers(1, LARGEST_COUNTER), hexadecimal(64), hexadecimal(32))
vectors = arrays(np.float64, SIZE, elements=st.floats(-1.0, 1.0))
positive = st.floats(1e-3, 1e6)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


# ── there and back ───────────────────────────────────────────────────────────────────────────


@given(lines, st.integers(0, UPDATES), st.integers(1, UPDATES), vectors, positive, positive)
def test_a_token_comes_back(
    line: Line, hop: int, updates: int, model: Any, steps: float, inverse: float
) -> None:
    hop = min(hop, updates)
    sent = made_token(
        line, hop, updates, model, 0.5 * steps * model, steps, inverse, updates == UPDATES
    )
    got = decode_token(encode_token(sent), LIMITS)
    assert got.mark == sent.mark
    assert (got.updates, got.final) == (sent.updates, sent.final)
    assert got.payload.walk == {"inverse_sum": inverse}
    assert got.payload.update.keys() == sent.payload.update.keys()
    for name, array in got.payload.update.items():
        np.testing.assert_array_equal(array, sent.payload.update[name])
    assert got.encoded == sent.encoded


@given(
    texts, hexadecimal(64), texts, st.integers(0, LARGEST_DEGREE), positive, st.booleans(),
    st.none() | lines, st.none() | lines, st.tuples(counts, counts), positive,
)  # fmt: skip
def test_a_greeting_comes_back(
    name: str, digest: str, plan: str, degree: int, importance: float, reaches: bool,
    newest: Line | None, final: Line | None, furthest: tuple[int, int], age: float,
) -> None:  # fmt: skip
    hop, updates = sorted(furthest)
    progress = None if newest is None else Progress(Mark(newest, hop), updates, age)
    final_digest = "" if final is None else digest
    told = Announcement(degree, importance, reaches, newest, final, progress, final_digest)
    greeting = Greeting(name, digest, told, plan)
    assert decode_greeting(encode_greeting(greeting)) == greeting


@given(st.sampled_from(Outcome), texts, st.none() | lines)
def test_a_receipt_comes_back(outcome: Outcome, reason: str, newest: Line | None) -> None:
    receipt = Receipt(outcome, reason, newest)
    assert decode_receipt(encode_receipt(receipt)) == receipt


def test_a_long_reason_is_cut() -> None:
    long = encode_receipt(Receipt(Outcome.REFUSED, "ä" * 10_000))
    assert decode_receipt(long).reason == "ä" * LONGEST_REASON


def test_a_token_is_the_same_bytes_that_protobuf_writes() -> None:
    """The vectors are appended by hand, to save copies."""
    message = wire.Token.FromString(encode_token(TOKEN))
    assert wire.Token.FromString(message.SerializeToString()) == message
    assert message.model == TOKEN.model.astype("<f8").tobytes()
    assert message.weighted_sum == TOKEN.payload.update["weighted_sum"].tobytes()
    for size in (0, 1, 15, 16, 17, 5000):
        vector = np.linspace(0.0, 0.01, size)
        limits = Limits(size, UPDATES, Everywhere())
        sent = changed(TOKEN, model=vector, weighted_sum=vector)
        np.testing.assert_array_equal(decode_token(encode_token(sent), limits).model, vector)


def test_vectors_of_any_layout_are_sent_as_doubles() -> None:
    strided = np.arange(6.0)[::2] / 10
    for model in (strided, strided.astype(np.float32), strided.astype(">f8")):
        got = decode_token(encode_token(changed(TOKEN, model=model)), LIMITS)
        np.testing.assert_array_equal(got.model, model)


def test_fields_of_a_later_version_are_ignored_but_not_a_later_version() -> None:
    """Number 15 is not taken yet: what a later version might add."""
    later = encode_token(TOKEN) + bytes([15 << 3 | 2, 3]) + b"new"
    assert decode_token(later, LIMITS).mark == TOKEN.mark
    for sort, decode in DECODERS.items():
        message = MESSAGES[sort]()
        for version in (0, VERSION + 1):
            message.version = version
            with pytest.raises(MessageError, match="version"):
                decode(message.SerializeToString())


def test_the_generated_file_is_that_of_the_proto_file(tmp_path: Path) -> None:
    source = Path(walklearn.__file__).parents[1]
    built = tmp_path / "messages.bin"
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{source}",
         f"--descriptor_set_out={built}", "walklearn/node/protocol/messages.proto"],
        check=True, timeout=60,
    )  # fmt: skip
    (wanted,) = descriptor_pb2.FileDescriptorSet.FromString(built.read_bytes()).file
    kept = descriptor_pb2.FileDescriptorProto.FromString(wire.DESCRIPTOR.serialized_pb)
    for message in wanted.message_type:
        for field in message.field:
            field.ClearField("json_name")  # only protoc's own output has it
    assert kept == wanted


# ── refused, with the name of the field ──────────────────────────────────────────────────────


def token_message(**changes: Any) -> bytes:
    message = wire.Token.FromString(encode_token(TOKEN))
    for name, value in changes.items():
        setattr(message, name, value)
    return message.SerializeToString()


def doubles(*numbers: float) -> bytes:
    return np.array(numbers, "<f8").tobytes()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": doubles(1.0, float("nan"), 0.0)}, "^model .*NaN"),
        ({"model": doubles(1.0, float("inf"), 0.0)}, "^model .*NaN"),
        ({"weighted_sum": doubles(0.0, float("nan"), 0.0)}, "^weighted_sum .*NaN"),
        ({"model": doubles(1.0, 0.0)}, "model .*16 bytes"),
        ({"model": doubles(1.0, 0.0, 0.0) + b"x"}, "model .*25 bytes"),
        ({"model": b""}, "model .*0 bytes"),
        ({"weighted_sum": doubles(*range(4))}, "weighted_sum .*32 bytes"),
        ({"model": doubles(2.0, 0.1, 0.0)}, r"model lies outside Ball\(radius=2.0\), by 0.002"),
        ({"model": doubles(1e300, 1e300, 0.0)}, "model lies outside"),
        ({"weighted_sum": doubles(1.0, 1.0, 0.0), "step_size_sum": 0.1}, "weighted_sum / step_siz"),
        ({"weighted_sum": doubles(1.0, 1.0, 0.0), "step_size_sum": 5e-324}, "outside"),
        ({"step_size_sum": float("nan")}, "step_size_sum .*nan"),
        ({"step_size_sum": -1.0}, r"step_size_sum .*-1\.0"),
        ({"step_size_sum": 0.0}, "step_size_sum .*positive"),
        ({"inverse_importance_sum": float("inf")}, "inverse_importance_sum .*inf"),
        ({"inverse_importance_sum": 0.0}, "inverse_importance_sum"),
        ({"updates": UPDATES + 1}, "updates .*100.* 101"),
        ({"updates": 2**64 - 1}, "updates"),
        ({"updates": UPDATES}, "final .*100 updates"),
        ({"final": True}, "final .*100 updates"),
        ({"updates": 0}, "hop .*0 to 0.* 4"),
        ({"hop": 6}, "hop .*0 to 5.* 6"),
        ({"hop": 2**53}, "hop"),
    ],
)  # fmt: skip
def test_tokens_that_the_plan_does_not_allow(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode_token(token_message(**changes), LIMITS)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nodes": 4.001}, r"memory.nodes .*4\.001"),
        ({"nodes": float("nan")}, "memory.nodes .*nan"),
        ({"squared_ages": 0.0}, "memory.squared_ages .* 0 .*memory.ages is 3"),
        ({"squared_ages": 2.9}, r"memory.squared_ages .*2\.9"),
        ({"squared_ages": 9.1}, r"memory.squared_ages .*9\.1"),
        ({"ages": 1e300, "squared_ages": 5e-324}, "memory.squared_ages"),
        ({"ages": 0.0}, "memory.squared_ages .* 5 .*memory.ages is 0"),
        ({"ages": 1e300, "squared_ages": float("inf")}, "memory.squared_ages .*inf"),
        ({"curvature": 1e-101}, "memory.curvature .*1e-100"),
        ({"curvature": float("inf")}, "memory.curvature .*inf"),
        ({"gradient_sum": np.array([0.0, np.inf, 0.0])}, "gradient_sum .*NaN"),
    ],
)  # fmt: skip
def test_memories_that_no_visits_leave(changes: dict[str, Any], reason: str) -> None:
    limits = Limits(SIZE, UPDATES, Ball(2.0), remembers=4)
    token = made_token(
        LINE, 4, 5, TOKEN.model, epoch="ef" * 16, gradient_sum=np.ones(3), nodes=4.0, ages=3.0,
        squared_ages=5.0, curvature=1.0, collects=False,
    )  # fmt: skip
    got = decode_token(encode_token(token), limits)
    assert got.epoch == token.epoch
    for name, array in token.payload.update.items():
        np.testing.assert_array_equal(got.payload.update[name], array)
        assert got.payload.update[name].dtype == array.dtype
    with pytest.raises(MessageError, match=reason):
        decode_token(encode_token(changed(token, **changes)), limits)


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Ball(2.0), 2.0 + 1e-10, 2.0 + 1e-7),
        (Box(-1.0, 1.0), 1.0 + 1e-10, 1.0 + 1e-7),
        (Everywhere(), 1e99, 1e101),
    ],
)
def test_w_may_be_left_by_rounding_only(domain: Domain, inside: float, outside: float) -> None:
    limits = Limits(1, UPDATES, domain)
    token = changed(TOKEN, model=np.array([inside]), weighted_sum=np.zeros(1))
    assert decode_token(encode_token(token), limits).model[0] == inside
    with pytest.raises(MessageError, match="outside"):
        decode_token(encode_token(changed(token, model=np.array([outside]))), limits)


def test_an_average_at_the_edge_of_all_numbers_may_be_rounded_beyond_it() -> None:
    """Or a token that was taken could not be read back from the disk after the next update."""
    limits = Limits(1, UPDATES, Everywhere())
    edge = np.array([np.nextafter(1e100, np.inf)])
    token = changed(TOKEN, model=np.zeros(1), weighted_sum=edge, step_size_sum=1.0)
    assert decode_token(encode_token(token), limits).average == edge


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"counter": 0}, r"generation\.counter"),
        ({"counter": LARGEST_COUNTER + 1}, r"generation\.counter"),
        ({"reclaimer": "AB" * 32}, r"generation\.reclaimer"),
        ({"reclaimer": "ab" * 31}, r"generation\.reclaimer"),
        ({"reclaimer": "ab" * 32 + "\n"}, r"generation\.reclaimer"),
        ({"walk": ""}, r"generation\.walk"),
        ({"walk": "x" * 100_000}, r"generation\.walk"),
    ],
)
def test_lines_that_cannot_be(line: dict[str, Any], reason: str) -> None:
    limits = Limits(SIZE, UPDATES, Ball(2.0))
    message = wire.Token.FromString(encode_token(TOKEN))
    for name, value in line.items():
        setattr(message.line, name, value)
    content = message.SerializeToString()
    if len(content) > limits.largest_token:
        reason = "token .*bytes"
    with pytest.raises(MessageError, match=reason) as refused:
        decode_token(content, limits)
    assert len(str(refused.value)) < 300


def test_a_token_without_a_line() -> None:
    message = wire.Token.FromString(encode_token(TOKEN))
    message.ClearField("line")
    with pytest.raises(MessageError, match=r"generation\.counter"):
        decode_token(message.SerializeToString(), LIMITS)


def test_oversized_messages_are_not_even_parsed() -> None:
    sizes = {"token": LIMITS.largest_token, "greeting": 1_004_096, "receipt": 4096}
    for sort, decode in DECODERS.items():
        with pytest.raises(MessageError, match="bytes"):
            decode(b"\xff" * (sizes[sort] + 1))
        with pytest.raises(MessageError, match=f"no {sort}"):
            decode(b"\xff" * sizes[sort])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: setattr(m, "name", "n" * 201), "^name .*201"),
        (lambda m: setattr(m, "plan_digest", "0f"), "^plan_digest"),
        (lambda m: setattr(m, "plan", "p" * 1_000_001), "^plan .*1000001"),
        (lambda m: setattr(m.announcement, "degree", LARGEST_DEGREE + 1), "^degree"),
        (lambda m: setattr(m.announcement, "importance", 0.0), "^importance .*positive"),
        (lambda m: setattr(m.announcement, "importance", -1.0), "^importance"),
        (lambda m: setattr(m.announcement, "importance", float("nan")), "^importance"),
        (lambda m: setattr(m.announcement.newest, "walk", "?"), "newest.walk"),
        (lambda m: m.announcement.final.SetInParent(), "final.counter"),
        (lambda m: m.ClearField("announcement"), "^importance .*positive"),
    ],
)
def test_greetings_that_cannot_be(change: Callable[[Any], None], reason: str) -> None:
    message = wire.Greeting.FromString(encode_greeting(GREETING))
    change(message)
    with pytest.raises(MessageError, match=reason):
        decode_greeting(message.SerializeToString())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"outcome": 0}, "outcome 0 is none"),
        ({"outcome": 77}, "outcome 77 is none"),
        ({"reason": "r" * (LONGEST_REASON + 1)}, "reason has 1001 characters"),
    ],
)
def test_receipts_that_cannot_be(changes: dict[str, Any], reason: str) -> None:
    message = wire.Receipt.FromString(encode_receipt(RECEIPT))
    for name, value in changes.items():
        setattr(message, name, value)
    with pytest.raises(MessageError, match=reason):
        decode_receipt(message.SerializeToString())


# ── whatever the bytes ───────────────────────────────────────────────────────────────────────

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "token": lambda content: decode_token(content, LIMITS),
    "greeting": decode_greeting,
    "receipt": decode_receipt,
}
ENCODED = {
    "token": encode_token(TOKEN),
    "greeting": encode_greeting(GREETING),
    "receipt": encode_receipt(RECEIPT),
}
MESSAGES: dict[str, Any] = {"token": wire.Token, "greeting": wire.Greeting, "receipt": wire.Receipt}


def check(sort: str, content: bytes) -> None:
    """Either it is refused as it should be, or what came out is within the limits."""
    try:
        got = DECODERS[sort](content)
    except MessageError:
        return
    if isinstance(got, Token):
        assert np.isfinite(got.model).all()
        assert np.isfinite(got.payload.update["weighted_sum"]).all()
        assert np.linalg.norm(got.model) <= 2.0 + 1e-8
        assert 0 <= got.updates <= UPDATES
        decode_token(got.encoded, LIMITS)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(DECODERS)), st.binary(max_size=400))
def test_any_bytes(sort: str, content: bytes) -> None:
    check(sort, content)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(list(DECODERS)),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.binary(max_size=9), st.integers(0, 9)), max_size=4
    ),
)
def test_real_messages_with_bytes_changed(sort: str, changes: list[tuple[int, bytes, int]]) -> None:
    """Each change puts some bytes in the place of some others."""
    content = ENCODED[sort]
    for where, new, length in changes:
        at = where % (len(content) + 1)
        content = content[:at] + new + content[at + length :]
    check(sort, content)


numbers = st.one_of(st.floats(), st.sampled_from([5e-324, 1e308, -0.0, 1e100, 2.0]))
wholes = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, UPDATES, 2**53]))


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_real_messages_with_fields_changed(data: st.DataObject) -> None:
    """Every field takes any value that the wire can carry."""
    sort = data.draw(st.sampled_from(list(DECODERS)))
    message = MESSAGES[sort].FromString(ENCODED[sort])
    for _ in range(data.draw(st.integers(1, 3))):
        change_field(data, message)
    check(sort, message.SerializeToString())


def change_field(data: st.DataObject, message: Any) -> None:
    field = data.draw(st.sampled_from(list(message.DESCRIPTOR.fields)))
    kinds: dict[int, st.SearchStrategy[Any]] = {
        field.TYPE_DOUBLE: numbers,
        field.TYPE_UINT64: wholes,
        field.TYPE_UINT32: st.integers(0, 2**32 - 1),
        field.TYPE_BOOL: st.booleans(),
        field.TYPE_ENUM: st.integers(-(2**31), 2**31 - 1),
        field.TYPE_STRING: texts | hexadecimal(64) | hexadecimal(32),
        field.TYPE_BYTES: st.binary(max_size=40)
        | st.lists(numbers, min_size=SIZE, max_size=SIZE).map(lambda each: doubles(*each)),
    }
    if field.type == field.TYPE_MESSAGE:
        change_field(data, getattr(message, field.name))
    else:
        setattr(message, field.name, data.draw(kinds[field.type]))


def test_the_text_of_a_line_stays_because_signatures_and_stored_marks_depend_on_it() -> None:
    assert LINE.text == f"2 3 {'ab' * 32} {'cd' * 16}"
