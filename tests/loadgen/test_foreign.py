"""What servers of other kinds say, in our own messages."""

from playhead.loadgen.foreign import EPOCH, Utterance


def test_bytes_become_samples_whatever_their_division() -> None:
    said = Utterance()
    assert said.started().epoch == EPOCH
    assert said.audio(b"\1", False, 1.0) is None
    first = said.audio(b"\2\3", False, 1.5)
    assert first is not None
    assert (first.position, first.samples, first.data, first.sent) == (0, 1, b"\1\2", 1_500.0)
    last = said.audio(b"\4", True, 2.0)
    assert last is not None
    assert (last.position, last.samples, last.data, last.final) == (1, 1, b"\3\4", True)
    end = said.audio(b"", True, 2.0)
    assert end is not None
    assert (end.samples, end.final) == (0, True)
    done = said.done("length_budget")
    assert (done.samples, done.heard, done.reason) == (2, 2, "length_budget")
    assert said.done().reason == "complete"


def test_other_ends_are_told_too() -> None:
    said = Utterance()
    assert said.cancelled().epoch == EPOCH
    failed = said.failed("busy", "come later", "a free slot")
    assert (failed.code, failed.message, failed.expected) == ("busy", "come later", "a free slot")
