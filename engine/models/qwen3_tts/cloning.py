"""Recordings to voices of a ``base`` model."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from playhead.engine.models.qwen3_tts import speaker as speakers
from playhead.engine.models.qwen3_tts import talker as talkers
from playhead.engine.models.qwen3_tts.codec_encoder import open_codec_encoder
from playhead.engine.models.qwen3_tts.config import ConfigError, read_model_config
from playhead.engine.models.qwen3_tts.prompt import Clone, PromptError
from playhead.engine.models.qwen3_tts.recordings import Recording, read_recordings
from playhead.engine.models.qwen3_tts.speaker import SpeakerEncoder
from playhead.engine.models.qwen3_tts.text import Tokenizer, without_specials
from playhead.engine.models.qwen3_tts.weights import load_tensors, model_folder

CODEC_FOLDER = "speech_tokenizer"
_log = logging.getLogger(__name__)


def open_speaker_encoder(source: str | Path, *, device: str = "cpu") -> SpeakerEncoder:
    """The part of a ``base`` model that makes a voice from a recording (see ``Clone``). Raises as
    ``loading.open_runner``, and ConfigError for a model without one."""
    folder = model_folder(source)
    config = read_model_config(folder / "config.json").speaker_encoder
    if config is None:
        raise ConfigError(f"{folder} holds no speaker encoder: only base models do")
    state = load_tensors(folder, speakers.tensors(config), ignored=(talkers.PREFIX,), device=device)
    return SpeakerEncoder.load(state, config)


def clone_voices(
    folder: Path, recordings: Path, tokenizer: Tokenizer, *, device: str = "cpu"
) -> dict[str, Clone]:
    """A voice for each recording of a folder (see :mod:`recordings`), from the encoders of the
    model in ``folder``, which are let go afterwards. Raises PromptError, ConfigError and
    WeightsError, all ValueError."""
    encoder = open_speaker_encoder(folder, device=device)
    found = read_recordings(recordings, encoder.config.sample_rate)
    texts = reference_texts(found, tokenizer)
    vectors = {one.name: encoder.describe(one.pcm, one.rate) for one in found}
    codec = open_codec_encoder(folder / CODEC_FOLDER, device=device) if texts else None
    voices: dict[str, Clone] = {}
    for one in found:
        text = texts.get(one.name, ())
        codes = codec.encode(one.pcm, one.rate) if codec is not None and text else None
        voices[one.name] = Clone(vectors[one.name], codes, text)
        how = "from its description" if codes is None else f"from {len(codes)} frames"
        _log.info("voice %s cloned %s", one.name, how)
    return voices


def reference_texts(
    recordings: Sequence[Recording], tokenizer: Tokenizer
) -> Mapping[str, tuple[int, ...]]:
    """Token ids of what is said, by voice; none for recordings without a text."""
    texts: dict[str, tuple[int, ...]] = {}
    for one in recordings:
        plain, removed = without_specials(one.text, tokenizer.specials)
        if removed:
            raise PromptError(
                f"{one.name}.txt contains {removed[0]}, a control word of the model's vocabulary"
            )
        if one.text:
            texts[one.name] = tuple(tokenizer(plain.strip()))
    return texts
