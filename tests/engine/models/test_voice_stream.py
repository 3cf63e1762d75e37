import itertools

import hibari
import numpy as np
import numpy.typing as npt
import pytest
from hibari import dsp
from playhead.engine.models.hibari import vocoder
from playhead.engine.models.hibari.backbone import Latents
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.models.hibari.shape import ENERGY, HOP
from playhead.engine.models.hibari.stream import FADE, SegmentStream
from playhead.engine.models.hibari.trim import (
    FIRST_LEAD,
    MID_CLAUSE,
    audible_span,
    margins_after,
)
from playhead.engine.models.hibari.vocoder import PulseTrain

TEXT = "Hello, this is a streaming voice gateway."
Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def made(runner: HibariRunner) -> Latents:
    (piece,), _ = runner._voice.frontend.plan(TEXT, 0)
    return runner._voice.backbone.run(piece.ids, 1.0)


def stream(made: Latents, start: int = 0, stop: int | None = None) -> SegmentStream:
    stop = len(made.f0) if stop is None else stop
    return SegmentStream(made.latents, made.f0, start, stop, (1, 2))


def decode(runner: HibariRunner, source: SegmentStream, sizes: list[int]) -> Floats:
    parts = []
    for size in sizes:
        while source.remaining:
            frames = min(size, source.remaining)
            parts += SegmentStream.decode(runner._decoder, [source], frames)
            if size != sizes[-1]:
                break
    return np.concatenate(parts)


@pytest.mark.parametrize("span", [(0, None), (1, None), (2, 90), (20, 21), (22, 180)])
@pytest.mark.parametrize("sizes", [[1, 2, 3, 4], [8, 16, 32], [7], [100, 1]])
def test_chunked_equals_whole(
    runner: HibariRunner, made: Latents, span: tuple[int, int | None], sizes: list[int]
) -> None:
    whole = decode(runner, stream(made, *span), [len(made.f0)])
    chunked = decode(runner, stream(made, *span), sizes)
    assert len(chunked) == len(whole) == ((span[1] or len(made.f0)) - span[0]) * HOP
    assert np.abs(chunked - whole).max() <= 1e-5


@pytest.mark.usefixtures("no_noise")
def test_a_cut_is_the_whole_faded_at_its_ends(runner: HibariRunner, made: Latents) -> None:
    start, stop = 60, 120
    whole = decode(runner, stream(made), [len(made.f0)])
    part = decode(runner, stream(made, start, stop), [16])
    expected = whole[start * HOP : stop * HOP]
    assert np.abs(part - expected)[FADE:-FADE].max() <= 1e-5
    assert abs(part[0]) <= abs(expected[0])
    assert np.abs(part[[0, -1]]).max() < 1e-3


class _Silence:
    @staticmethod
    def standard_normal(shape: tuple[int, ...], dtype: type = np.float32) -> Floats:
        return np.zeros(shape, dtype)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocoder, "_NOISE_ROWS", np.zeros_like(vocoder._NOISE_ROWS[:8]))


@pytest.mark.usefixtures("no_noise")
def test_close_to_the_published_synthesis(runner: HibariRunner, made: Latents) -> None:
    """The published model quantises activations: measured, it is 30 dB from its own weights."""
    published = hibari.Hibari(g2p=runner._voice.frontend._g2p)
    (phonemes,) = published.phonemize(TEXT)
    theirs = published.from_ids(published.ids(phonemes), rng=_Silence())
    ours = decode(runner, stream(made), [32])
    assert len(ours) == len(theirs)
    ratio = 10 * np.log10(np.sum(theirs**2) / np.sum((theirs - ours) ** 2))
    assert ratio > 25.0


def test_asking_for_more_than_is_left_is_refused(runner: HibariRunner, made: Latents) -> None:
    source = stream(made, 0, 10)
    for frames in (0, 11):
        with pytest.raises(ValueError, match="10 left"):
            SegmentStream.decode(runner._decoder, [source], frames)


@pytest.mark.parametrize("cuts", [[7], [1, 2, 3], [30, 60]])
def test_pulses_do_not_depend_on_how_they_are_asked_for(cuts: list[int]) -> None:
    f0 = np.concatenate([np.zeros(10), np.linspace(90, 300, 60), np.zeros(5)]).astype(np.float32)
    whole = PulseTrain(f0).frames(0, len(f0))
    assert np.abs(whole.reshape(-1) - dsp.pulses(f0)).max() < 2e-2 * np.abs(whole).max()
    train = PulseTrain(f0)
    bounds = [0, *cuts, len(f0)]
    parts = [train.frames(a, b) for a, b in itertools.pairwise(bounds)]
    assert np.array_equal(np.concatenate(parts), whole)
    late = PulseTrain(f0)
    assert np.array_equal(late.frames(40, 50), whole[40:50])
    assert np.array_equal(late.frames(42, 50), whole[42:50])


def test_noise_is_drawn_frame_by_frame() -> None:
    def draw(*counts: int) -> npt.NDArray[np.complex64]:
        voicing = vocoder.Voicing(
            PulseTrain(np.zeros(40, np.float32)), np.random.Generator(np.random.SFC64(5)), 40, 3
        )
        return np.concatenate([vocoder.excite(voicing, count)[1] for count in counts])

    assert np.array_equal(draw(12), draw(1, 5, 6))
    assert draw(12).real.std() == pytest.approx(1.0, abs=0.05)
    assert len({row.tobytes() for row in draw(12)}) == 12


def test_outside_the_segment_there_are_no_pulses() -> None:
    train = PulseTrain(np.full(4, 100.0, np.float32))
    around = train.frames(-3, 7)
    assert around.shape == (10, HOP)
    assert not around[:3].any()
    assert around[3:7].any(axis=1).all()
    assert not around[7:].any()
    assert not PulseTrain(np.full(4, 100.0, np.float32)).frames(-3, 0).any()
    assert not train.frames(5, 8).any()


def test_an_hour_does_not_wear_out_the_phase() -> None:
    train = PulseTrain(np.full(8, 100.0, np.float32))
    train.phase = 3600.0 * 24000 * 100  # an hour at 100 Hz: back at the start of a period
    fresh = PulseTrain(np.full(8, 100.0, np.float32))
    assert np.abs(train.frames(0, 8) - fresh.frames(0, 8)).max() < 1e-2


@pytest.mark.parametrize(
    ("text", "lead", "tail"),
    [("One.", 12, 8), ("One?", 12, 8), ('"One!"', 12, 8), ("One,", 4, 3), ("One —", 4, 3),
     ("one", 1, 0), ("", 1, 0)],
)  # fmt: skip
def test_pauses_after_a_text(text: str, lead: int, tail: int) -> None:
    assert (margins_after(text).lead, margins_after(text).tail) == (lead, tail)
    assert margins_after("one") == MID_CLAUSE


def test_silence_is_cut_in_whole_frames() -> None:
    energy = np.full(50, -1.9, np.float32)
    assert audible_span(energy, 3, 3) == (0, 0)
    energy[20:30] = 1.0
    energy[30:34] = -0.9  # dying away
    assert audible_span(energy, FIRST_LEAD, 0) == (20, 34)
    assert audible_span(energy, 12, 8) == (8, 42)
    assert audible_span(energy, 100, 100) == (0, 50)


def test_the_energy_tells_where_the_sound_is(runner: HibariRunner, made: Latents) -> None:
    start, stop = audible_span(made.latents[:, ENERGY], 0, 0)
    frames = np.abs(decode(runner, stream(made), [64])).reshape(-1, HOP).max(axis=1)
    audible = np.flatnonzero(frames > 0.02 * frames.max())
    assert -1 <= audible[0] - start <= 4
    assert 0 <= stop - 1 - audible[-1] <= 12
