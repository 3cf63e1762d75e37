"""What a model with its slots would take of a device, worked out before anything is loaded."""

from pathlib import Path

from playhead.engine.models.qwen3_tts import predictor as predictors
from playhead.engine.models.qwen3_tts import presets
from playhead.engine.models.qwen3_tts import talker as talkers
from playhead.engine.models.qwen3_tts.cloning import CODEC_FOLDER
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import (
    CodecConfig,
    ModelConfig,
    read_codec_config,
    read_model_config,
)
from playhead.engine.models.qwen3_tts.startup import Needs, check_fits, needs

RANDOM = "random:"
SPARE_SLOTS = 8
"""Beyond what is let in: ended utterances whose last work is still in a lane."""


def needs_of(config: ModelConfig, codec: CodecConfig, itemsize: int) -> Needs:
    """Of a model of these sizes, of which an element takes ``itemsize`` bytes."""
    specs = talkers.tensors(config.talker) | predictors.tensors(config.talker)
    parts = (*specs.values(), *decoder_tensors(codec.decoder).values())
    return needs(config.talker, codec.decoder, sum(part.size for part in parts), itemsize)


def needed(weights: str, slots: int, positions: int, free: int) -> int:
    """Bytes that the weights and so many slots take in bfloat16. ``weights``: a folder, or
    ``random:`` and a size. Raises ``TooLarge`` when that does not fit ``free`` bytes, and
    ``ValueError`` for a folder that is no model's."""
    if weights.startswith(RANDOM):
        config, codec = presets.model_config(weights.removeprefix(RANDOM)), presets.codec_config()
    else:
        folder = Path(weights)
        config = read_model_config(folder / "config.json")
        codec = read_codec_config(folder / CODEC_FOLDER / "config.json")
    need = needs_of(config, codec, 2)
    check_fits(need, slots + SPARE_SLOTS, positions, free)
    return need.weights + (slots + SPARE_SLOTS) * need.slot(positions)
