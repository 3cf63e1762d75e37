"""Which words of a normalised text stand for which words before normalisation."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher


def align(before: Sequence[str], after: Sequence[str], count: Callable[[str], int]) -> list[int]:
    """Index into ``after`` where each word of ``before`` starts; never falls; ends at len(after).

    Unchanged words map one to one. A changed run ("3:30 pm" -> "three thirty P.M.") is divided by
    ``count``, the number of words a word of ``before`` would become on its own.
    """
    if list(before) == list(after):
        return list(range(len(before)))
    starts: list[int] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, start, stop in matcher.get_opcodes():
        if kind == "equal":
            starts += range(start, stop)
        else:
            starts += _divide(before[first:last], start, stop, count)
    return starts


def _divide(words: Sequence[str], start: int, stop: int, count: Callable[[str], int]) -> list[int]:
    shares = [max(1, count(word)) for word in words] if len(words) > 1 else [1] * len(words)
    total = sum(shares)
    before = 0
    starts = []
    for share in shares:
        starts.append(start + before * (stop - start) // total)
        before += share
    return starts
