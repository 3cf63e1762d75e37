"""Open a model: from a folder or hub id, or with random weights of a folder's true sizes."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from playhead.engine.models.qwen3_tts import predictor as predictors
from playhead.engine.models.qwen3_tts import presets
from playhead.engine.models.qwen3_tts import talker as talkers
from playhead.engine.models.qwen3_tts.cloning import CODEC_FOLDER, clone_voices
from playhead.engine.models.qwen3_tts.codec import MAX_FRAMES, Codec, CodecDecoder, open_codec
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import (
    CodecConfig,
    ConfigError,
    ModelConfig,
    read_codec_config,
    read_model_config,
)
from playhead.engine.models.qwen3_tts.config_table import Table, read_table
from playhead.engine.models.qwen3_tts.execution import Buckets, Graphed
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.graphs import fast_ops, with_ops
from playhead.engine.models.qwen3_tts.memory import needs_of
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.prompt import Clone, PromptError, Voices
from playhead.engine.models.qwen3_tts.runner import Options, Parts, Qwen3Runner
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.startup import TooLarge, check_fits
from playhead.engine.models.qwen3_tts.talker import Talker
from playhead.engine.models.qwen3_tts.text import HashTokenizer, Tokenizer
from playhead.engine.models.qwen3_tts.vocabulary import open_vocabulary
from playhead.engine.models.qwen3_tts.weights import (
    compute_dtype,
    load_tensors,
    model_folder,
    random_tensors,
)
from playhead.engine.progress import Count, Tell, quiet
from playhead.engine.types import Lane, Request

IGNORED = ("speaker_encoder.",)
SPEECH_ROOM = 32
"""Positions that a cloned voice must leave: hardly two seconds of text and speech."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and how large a model runs. ``positions``: context of a slot, text and speech, at
    80 ms a frame. ``random_seed``: weights are random, and ``frames`` says how long requests are.
    ``recordings``: a folder of voices for a base model to clone, besides ``clones``. ``memory``:
    bytes free on the device, to refuse at once what will not fit. ``tell`` hears how loading goes.
    On CUDA only: ``buckets`` are captured as graphs, on ``streams`` where given, and ``compiled``
    fuses the layers' small operations.
    """

    slots: int = 8
    positions: int = 1024
    device: str = "cpu"
    dtype: str = "float32"
    random_seed: int | None = None
    frames: Callable[[Request], int] | None = None
    clones: Mapping[str, Clone] = field(default_factory=dict)
    recordings: Path | None = None
    memory: int | None = None
    options: Options = field(default_factory=Options)
    codec_ops: TorchOps | None = None
    buckets: Buckets = field(default_factory=Buckets)
    compiled: bool = True
    streams: Mapping[Lane, torch.cuda.Stream] | None = None
    tell: Tell = quiet


def open_runner(source: str | Path, setup: Setup) -> Qwen3Runner:
    """:func:`load_parts`, and who runs them on the device of ``setup``."""
    parts, options = load_parts(source, setup)
    if torch.device(setup.device).type != "cuda":
        return Qwen3Runner(parts, options)
    execution = Graphed(parts.loop, parts.codec, setup.buckets, setup.streams)
    return Qwen3Runner(parts, options, execution)


def load_parts(source: str | Path, setup: Setup) -> tuple[Parts, Options]:
    """Load everything that speaking needs. ``source``: a folder, a hub id, or with random weights
    also the name of a published size (:mod:`presets`).

    Raises ValueError (``ConfigError``, ``WeightsError``) for a folder that is missing, partial or
    of another architecture, (``VocabularyError``) for a vocabulary that cannot be read,
    (``PromptError``) for voices that cannot be cloned and (``TooLarge``) for more than the device
    or the model holds.
    """
    if (setup.random_seed is None) != (setup.frames is None):
        raise ValueError("random weights and a number of frames go together: give both or neither")
    folder, config, codec_config = _describe(source, setup)
    _check_pair(config, codec_config)
    if setup.positions > config.talker.max_positions:
        raise TooLarge(
            f"a context of {setup.positions} positions exceeds the model's, "
            f"{config.talker.max_positions}"
        )
    if setup.memory is not None:
        _check_memory(config, codec_config, setup, setup.memory)
    tokenizer = _tokenizer(folder, config)
    clones = _clones(folder, config, tokenizer, setup)
    loop = _loop(folder, config, setup)
    codec = _codec(folder, codec_config, setup)
    voices = Voices(config, clones)
    parts = Parts(config, loop, codec, codec_config.sample_rate, tokenizer, voices)
    return parts, replace(setup.options, frames=setup.frames)


def _describe(source: str | Path, setup: Setup) -> tuple[Path | None, ModelConfig, CodecConfig]:
    """The model's folder, if it has one, and its sizes."""
    size = str(source)
    named = size in presets.HIDDEN or not (Path(source).exists() or "/" in size)
    if setup.random_seed is not None and named:
        return None, presets.model_config(size), presets.codec_config()
    folder = model_folder(source)
    return (
        folder,
        read_model_config(folder / "config.json"),
        read_codec_config(folder / CODEC_FOLDER / "config.json"),
    )


def generation_rules(folder: Path | None) -> tuple[Sampling, Sampling]:
    """How codes are drawn: of codebook 0 and of the rest, from ``generation_config.json``, where
    there is one; what it leaves out is as published. Raises ConfigError."""
    path = None if folder is None else folder / "generation_config.json"
    said = Table({}, "as published")
    if path is not None and path.exists():
        said = read_table(path, "a model folder")
    penalty = said.number("repetition_penalty", 1.05)
    return (
        _rule(said, "", "do_sample", penalty),
        _rule(said, "subtalker_", "subtalker_dosample", 1.0),
    )


def _rule(said: Table, prefix: str, sample: str, penalty: float) -> Sampling:
    try:
        return Sampling(
            temperature=said.number(prefix + "temperature", 0.9),
            top_k=said.integer(prefix + "top_k", 50, least=0),
            top_p=said.number(prefix + "top_p", 1.0),
            repetition_penalty=penalty,
            greedy=not said.boolean(sample, True),
        )
    except ConfigError:
        raise
    except ValueError as fault:
        raise ConfigError(f"{said.path}: {prefix}{fault}") from None


def _loop(folder: Path | None, config: ModelConfig, setup: Setup) -> FrameLoop:
    device, dtype = torch.device(setup.device), compute_dtype(setup.dtype)
    specs = talkers.tensors(config.talker) | predictors.tensors(config.talker)
    read = Count(setup.tell, "reading the weights", sum(spec.size for spec in specs.values()))
    if folder is None or setup.random_seed is not None:
        seed = setup.random_seed or 0
        _log.warning("weights are RANDOM (seed %d): this speaks noise", seed)
        state = random_tensors(specs, seed, device=device, dtype=dtype, loaded=read.add)
    else:
        state = load_tensors(
            folder, specs, ignored=IGNORED, device=device, dtype=dtype, loaded=read.add
        )
    talker = Talker.load(state, config.talker, setup.positions)
    predictor = Predictor.load(state, config.talker, talker.codec_table)
    table = SlotTable(config.talker, setup.slots, setup.positions, device=device, dtype=dtype)
    rule, fine_rule = generation_rules(folder)
    loop = FrameLoop(talker, predictor, table, config.talker, rule, fine_rule)
    if device.type != "cuda":
        return loop
    return with_ops(loop, fast_ops(compiled=setup.compiled, in_place=True))


def _codec(folder: Path | None, config: CodecConfig, setup: Setup) -> Codec:
    setup.tell("reading the neural codec", 0.0)
    if folder is not None and setup.random_seed is None:
        at = folder / CODEC_FOLDER
        return open_codec(at, setup.slots, device=setup.device, ops=_codec_ops(setup))
    specs = decoder_tensors(config.decoder)
    tensors = random_tensors(specs, (setup.random_seed or 0) + 1, device=setup.device)
    decoder = CodecDecoder(config.decoder, tensors, _codec_ops(setup))
    return Codec(decoder, decoder.arena(setup.slots), MAX_FRAMES)


def _codec_ops(setup: Setup) -> TorchOps | None:
    """Fused kernels where the device has them and rounding is accepted; else the exact path."""
    fast = torch.device(setup.device).type == "cuda" and setup.dtype == "bfloat16"
    if setup.codec_ops is not None or not fast:
        return setup.codec_ops
    # Needs triton, which only comes with torch for CUDA.
    from playhead.engine.models.qwen3_tts.codec_fused import FusedOps

    return FusedOps(torch.bfloat16)


def _tokenizer(folder: Path | None, config: ModelConfig) -> Tokenizer:
    if folder is None:
        return HashTokenizer(config.ids.im_start)
    return open_vocabulary(folder, config.ids)


def _check_pair(config: ModelConfig, codec: CodecConfig) -> None:
    """Codes of the talker must be codes of the codec."""
    groups, books = config.talker.code_groups, codec.decoder.quantizers
    if groups != books:
        raise ConfigError(f"the talker makes {groups} codes per frame, the codec takes {books}")
    vocab, size = config.talker.predictor.vocab, codec.decoder.codebook_size
    if vocab > size:
        raise ConfigError(f"the talker has {vocab} codes, a codebook of the codec only {size}")


def _check_memory(config: ModelConfig, codec: CodecConfig, setup: Setup, free: int) -> None:
    need = needs_of(config, codec, compute_dtype(setup.dtype).itemsize)
    check_fits(need, setup.slots, setup.positions, free)


def _clones(
    folder: Path | None, config: ModelConfig, tokenizer: Tokenizer, setup: Setup
) -> dict[str, Clone]:
    """Every cloned voice, checked: before the weights, which take longer."""
    clones = dict(setup.clones)
    if (clones or setup.recordings) and config.kind != "base":
        raise PromptError(f"a {config.kind} model clones no voices, base models do")
    if config.kind == "base" and not clones and setup.recordings is None:
        raise PromptError("a base model speaks with cloned voices alone: give it recordings")
    if setup.recordings is not None:
        setup.tell("learning voices", 0.0)
        assert folder is not None, "presets are no base models"
        clones |= clone_voices(folder, setup.recordings, tokenizer, device=setup.device)
    for name, clone in clones.items():
        _check_clone(name, clone, config, setup.positions)
    return clones


def _check_clone(name: str, clone: Clone, config: ModelConfig, positions: int) -> None:
    """A cloned voice must be one of this model's, and leave room for speech."""
    hidden, groups = config.talker.hidden, config.talker.code_groups
    if clone.vector.shape != (hidden,):
        raise PromptError(
            f"voice {name!r}: its vector has shape {list(clone.vector.shape)}, not [{hidden}]"
        )
    codes = clone.codes
    if codes is None:
        return
    vocab = config.talker.predictor.vocab
    if codes.ndim != 2 or codes.shape[1] != groups or not ((codes >= 0) & (codes < vocab)).all():
        raise PromptError(
            f"voice {name!r}: its codes must be [frames, {groups}] from 0 to {vocab - 1}"
        )
    taken = len(codes) + len(clone.text)
    if taken + SPEECH_ROOM > positions:
        raise PromptError(
            f"voice {name!r}: its recording and text take {taken} of {positions} positions, and "
            f"{SPEECH_ROOM} must be left to speak: give a shorter recording or more context"
        )
