# ruff: noqa: E402 - what follows needs torch
"""How codes are drawn."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.sampling import Sampling, draw, penalise, uniforms

LOGITS = torch.tensor([[0.0, 3.0, 1.0, 2.0, -1.0]])
PLAIN = Sampling(temperature=1.0, top_k=0)


def codes(rule: Sampling, count: int = 4000, logits: torch.Tensor = LOGITS) -> list[int]:
    """Codes at evenly spread random numbers."""
    spread = (torch.arange(count) + 0.5) / count
    drawn: list[int] = draw(logits.expand(count, -1), rule, spread).tolist()
    return drawn


def test_greedy_takes_the_best() -> None:
    assert set(codes(Sampling(greedy=True), 5)) == {1}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_shares_are_those_of_the_softmax(temperature: float) -> None:
    drawn = codes(Sampling(temperature=temperature, top_k=0))
    shares = torch.softmax(LOGITS[0] / temperature, -1)
    for code, share in enumerate(shares.tolist()):
        assert drawn.count(code) / len(drawn) == pytest.approx(share, abs=1e-3)


def test_top_k_keeps_the_best_and_rescales() -> None:
    drawn = codes(Sampling(temperature=1.0, top_k=2))
    assert set(drawn) == {1, 3}
    assert drawn.count(1) / len(drawn) == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-3)


def test_top_k_beyond_the_vocabulary_is_no_limit() -> None:
    assert set(codes(Sampling(temperature=1.0, top_k=99))) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, {1}), (0.7, {1, 3}), (0.9, {1, 3, 2})])
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p: float, kept: set[int]) -> None:
    # Shares, best first: 0.636, 0.234, 0.086, 0.032, 0.012.
    assert set(codes(Sampling(temperature=1.0, top_k=0, top_p=top_p))) == kept


@pytest.mark.parametrize("number", [0.0, 1.0 - 2**-24])
def test_extreme_numbers_give_possible_codes(number: float) -> None:
    logits = torch.tensor([[1.0, -math.inf, 0.0, -math.inf]])
    drawn = draw(logits, PLAIN, torch.tensor([number])).tolist()
    assert drawn == ([0] if number == 0.0 else [2])


def test_a_row_of_nan_gives_some_code_and_leaves_the_others_alone() -> None:
    logits = torch.stack((torch.full((5,), math.nan), LOGITS[0]))
    drawn = draw(logits, Sampling(top_k=3), torch.tensor([0.5, 0.1])).tolist()
    assert 0 <= drawn[0] < 5
    assert drawn[1] == 1


def test_penalty_divides_gains_and_multiplies_losses_of_what_was_seen() -> None:
    logits = torch.tensor([[2.0, -2.0, 2.0, -2.0]])
    seen = torch.tensor([[True, True, False, False]])
    assert penalise(logits, seen, 2.0).tolist() == [[1.0, -4.0, 2.0, -2.0]]
    assert penalise(logits, seen, 1.0) is logits


def test_numbers_depend_on_seed_and_frame_alone() -> None:
    seeds, frames = torch.tensor([3, 9, 3, -1, 1 << 40]), torch.tensor([0, 0, 7, 2, 1])
    together = uniforms(seeds, frames, 16)
    for row in range(5):
        alone = uniforms(seeds[row : row + 1], frames[row : row + 1], 16)
        assert torch.equal(alone[0], together[row])
    assert len({tuple(row) for row in together.tolist()}) == 5
    assert torch.equal(together, uniforms(seeds, frames, 16))


def test_numbers_are_uniform_and_independent() -> None:
    seeds = torch.arange(200).repeat_interleave(50)
    drawn = uniforms(seeds, torch.arange(50).repeat(200), 16)
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    histogram = torch.histc(drawn, 20, 0.0, 1.0) / drawn.numel()
    assert (histogram - 0.05).abs().max() < 0.002
    columns = torch.corrcoef(drawn.T) - torch.eye(16)
    assert columns.abs().max() < 0.04
    by_seed = torch.corrcoef(drawn.view(200, 50, 16)[:, 0].T) - torch.eye(16)
    assert by_seed.abs().max() < 0.35
    steps = torch.corrcoef(torch.stack((drawn[:-1, 0], drawn[1:, 0])))[0, 1]
    assert steps.abs() < 0.04


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
    ],
)
def test_impossible_rules_are_refused(values: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sampling(**values)  # type: ignore[arg-type]
