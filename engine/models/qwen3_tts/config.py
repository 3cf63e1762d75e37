"""What a model folder's ``config.json`` says, checked.

Every size comes from the file. There are no fall-back values: the defaults found in circulation
belong to other models, and a guessed size would load wrong weights without a word. The one
exception is the speaker encoder's inner sizes, which no published file states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from playhead.engine.models.qwen3_tts.config_table import (
    ConfigError,
    Table,
    read_table,
    transformer_sizes,
)

__all__ = [
    "CodecConfig",
    "CodecDecoderConfig",
    "CodecIds",
    "ConfigError",
    "ModelConfig",
    "PredictorConfig",
    "SpeakerEncoderConfig",
    "TalkerConfig",
    "TextIds",
    "read_codec_config",
    "read_model_config",
]

MODEL_TYPES = ("custom_voice", "voice_design", "base")


@dataclass(frozen=True, slots=True)
class TextIds:
    """Ids of the text vocabulary that frame a prompt."""

    im_start: int
    im_end: int
    assistant: int
    tts_pad: int
    tts_bos: int
    tts_eos: int


@dataclass(frozen=True, slots=True)
class CodecIds:
    """Ids of the talker's codec vocabulary that are no codes."""

    pad: int
    bos: int
    eos: int
    think: int
    nothink: int
    think_bos: int
    think_eos: int


@dataclass(frozen=True, slots=True)
class PredictorConfig:
    """The small transformer that fills in codes 1 .. code_groups - 1 of a frame."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    code_groups: int
    norm_eps: float
    rope_theta: float


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """The backbone that emits code 0 of a frame."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    text_vocab: int
    text_hidden: int
    code_groups: int
    max_positions: int
    norm_eps: float
    rope_theta: float
    ids: CodecIds
    languages: Mapping[str, int]  # lower-case name -> codec id, dialects among them
    speakers: Mapping[str, int]  # lower-case name -> codec id; empty where voices are not built in
    dialects: Mapping[str, str]  # speaker -> the dialect it speaks in Chinese
    predictor: PredictorConfig


@dataclass(frozen=True, slots=True)
class SpeakerEncoderConfig:
    """ECAPA-TDNN that turns reference audio into a voice vector (``base`` models only)."""

    width: int  # of the voice vector; equals the talker's hidden size
    sample_rate: int  # Hz
    mels: int
    channels: tuple[int, ...]
    kernel_sizes: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    res2net_scale: int
    se_channels: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A speech model's ``config.json``."""

    kind: str  # one of MODEL_TYPES
    size: str  # "0b6" or "1b7", as the file names it
    ids: TextIds
    talker: TalkerConfig
    speaker_encoder: SpeakerEncoderConfig | None


@dataclass(frozen=True, slots=True)
class CodecDecoderConfig:
    """The half of the neural codec that turns codes into PCM."""

    quantizers: int
    semantic_quantizers: int
    codebook_size: int
    codebook_width: int  # width of what the quantizer gives; an entry is half as wide
    latent: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int  # columns a column attends to, itself included
    norm_eps: float
    rope_theta: float
    channels: int  # of the first waveform convolution; halves at every stage
    upsample_rates: tuple[int, ...]  # of the waveform stages
    upsampling_ratios: tuple[int, ...]  # of the latent stages before them

    @property
    def frame_samples(self) -> int:
        """PCM samples of one frame."""
        return prod(self.upsample_rates) * prod(self.upsampling_ratios)


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """The neural codec's ``config.json``."""

    sample_rate: int  # Hz of the decoded PCM
    frame_samples: int
    decoder: CodecDecoderConfig


def read_model_config(path: Path) -> ModelConfig:
    """Read a speech model's ``config.json``.

    Raises :class:`ConfigError` naming the key that is missing or wrong and what would be right.
    """
    top = read_table(path, "a model folder")
    top.expect("model_type", "qwen3_tts")
    kind = top.choice("tts_model_type", MODEL_TYPES)
    talker = _talker(top.table("talker_config"))
    encoder = _speaker_encoder(top.table("speaker_encoder_config")) if kind == "base" else None
    if encoder is not None and encoder.width != talker.hidden:
        raise ConfigError(
            f"{path}: speaker_encoder_config.enc_dim is {encoder.width}; it must equal "
            f"talker_config.hidden_size, {talker.hidden}"
        )
    ids = TextIds(
        **{
            name: top.integer(f"{name}_token_id")
            for name in ("im_start", "im_end", "assistant", "tts_pad", "tts_bos", "tts_eos")
        }
    )
    return ModelConfig(kind, top.text("tts_model_size"), ids, talker, encoder)


def read_codec_config(path: Path) -> CodecConfig:
    """Read the neural codec's ``config.json``.

    Raises :class:`ConfigError` naming the key that is missing or wrong and what would be right.
    """
    top = read_table(path, "a codec folder")
    top.expect("model_type", "qwen3_tts_tokenizer_12hz")
    decoder = _codec_decoder(top.table("decoder_config"))
    config = CodecConfig(
        top.integer("output_sample_rate"), top.integer("decode_upsample_rate"), decoder
    )
    if config.frame_samples != decoder.frame_samples:
        raise ConfigError(
            f"{path}: decode_upsample_rate is {config.frame_samples}, but the upsampling stages of "
            f"decoder_config multiply to {decoder.frame_samples}"
        )
    return config


def _talker(table: Table) -> TalkerConfig:
    _check_transformer(table)
    table.expect("use_sliding_window", False)
    sizes = transformer_sizes(table)
    _check_rope_sections(table, sizes["head_dim"])
    languages = table.ids("codec_language_id")
    speakers = table.ids("spk_id")
    predictor = _predictor(table.table("code_predictor_config"))
    groups = table.integer("num_code_groups")
    if predictor.code_groups != groups:
        raise ConfigError(
            f"{table.path}: code_predictor_config.num_code_groups is {predictor.code_groups}; "
            f"it must equal num_code_groups, {groups}"
        )
    return TalkerConfig(
        **sizes,
        vocab=table.integer("vocab_size"),
        text_vocab=table.integer("text_vocab_size"),
        text_hidden=table.integer("text_hidden_size"),
        code_groups=groups,
        max_positions=table.integer("max_position_embeddings"),
        norm_eps=table.number("rms_norm_eps"),
        ids=_codec_ids(table),
        languages=languages,
        speakers=speakers,
        dialects=_dialects(table, speakers, languages),
        predictor=predictor,
    )


def _codec_ids(table: Table) -> CodecIds:
    return CodecIds(
        pad=table.integer("codec_pad_id"),
        bos=table.integer("codec_bos_id"),
        eos=table.integer("codec_eos_token_id"),
        think=table.integer("codec_think_id"),
        nothink=table.integer("codec_nothink_id"),
        think_bos=table.integer("codec_think_bos_id"),
        think_eos=table.integer("codec_think_eos_id"),
    )


def _dialects(
    table: Table, speakers: Mapping[str, int], languages: Mapping[str, int]
) -> dict[str, str]:
    """Speakers whose dialect replaces Chinese. The file says false where there is none."""
    found: dict[str, str] = {}
    for speaker, dialect in table.entries("spk_is_dialect").items():
        if dialect is False:
            continue
        if not isinstance(dialect, str) or dialect not in languages or speaker not in speakers:
            raise ConfigError(
                f"{table.path}.spk_is_dialect: {speaker} has {dialect!r}; a speaker of spk_id has "
                f"false or a dialect of codec_language_id"
            )
        found[speaker] = dialect
    return found


def _predictor(table: Table) -> PredictorConfig:
    _check_transformer(table)
    table.expect("use_sliding_window", False)
    sizes = transformer_sizes(table)
    return PredictorConfig(
        **sizes,
        vocab=table.integer("vocab_size"),
        code_groups=table.integer("num_code_groups"),
        norm_eps=table.number("rms_norm_eps"),
    )


def _speaker_encoder(table: Table) -> SpeakerEncoderConfig:
    return SpeakerEncoderConfig(
        width=table.integer("enc_dim"),
        sample_rate=table.integer("sample_rate"),
        mels=table.integer("mel_dim", 128),
        channels=table.integers("enc_channels", (512, 512, 512, 512, 1536)),
        kernel_sizes=table.integers("enc_kernel_sizes", (5, 3, 3, 3, 1)),
        dilations=table.integers("enc_dilations", (1, 2, 3, 4, 1)),
        attention_channels=table.integer("enc_attention_channels", 128),
        res2net_scale=table.integer("enc_res2net_scale", 8),
        se_channels=table.integer("enc_se_channels", 128),
    )


def _codec_decoder(table: Table) -> CodecDecoderConfig:
    _check_transformer(table)
    sizes = transformer_sizes(table)
    return CodecDecoderConfig(
        quantizers=table.integer("num_quantizers"),
        semantic_quantizers=table.expect("num_semantic_quantizers", 1),
        codebook_size=table.integer("codebook_size"),
        codebook_width=table.even("codebook_dim"),
        latent=table.integer("latent_dim"),
        **sizes,
        window=table.integer("sliding_window"),
        norm_eps=table.number("rms_norm_eps"),
        channels=table.integer("decoder_dim"),
        upsample_rates=table.integers("upsample_rates"),
        upsampling_ratios=table.integers("upsampling_ratios"),
    )


def _check_transformer(table: Table) -> None:
    table.expect("hidden_act", "silu")
    table.expect("attention_bias", False)


def _check_rope_sections(table: Table, head_dim: int) -> None:
    """All axes of the multi-axis rotation carry the same position, so only their sum matters."""
    scaling = table.table("rope_scaling")
    scaling.expect("rope_type", "default")
    sections = scaling.integers("mrope_section")
    if sum(sections) != head_dim // 2:
        raise ConfigError(
            f"{scaling.path}.mrope_section adds up to {sum(sections)}; "
            f"it must be half of head_dim, {head_dim // 2}"
        )
