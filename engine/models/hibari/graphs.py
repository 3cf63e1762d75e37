"""Rebuilds the voice's ONNX graph as two: text to latents, and latents to spectra.

The published graph (hibari-tts 0.2.1, Apache-2.0) runs a whole sentence at once. Its second half
is a convolution (kernel 7), eight ConvNeXt-like blocks with depthwise kernel 7 and a linear head:
27 frames of context on each side and no other memory. Rebuilt here so that every convolution takes
its left context from the caller, it computes each frame once, whatever the chunk size.
Its int8 weights are expanded to float32: quantising activations per call, as the published graph
does, makes a frame depend on which frames happen to share the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from playhead.engine.models.hibari.shape import (
    BINS,
    BLOCKS,
    CHANNELS,
    KERNEL,
    LATENTS,
    PADDED_BINS,
)

if TYPE_CHECKING:
    import onnx

LATENT_TENSOR = "/Concat_43_output_0"
DURATION_TENSOR = "/Cast_32_output_0"
BACKBONE_INPUTS = ("ids", "speed")
BACKBONE_OUTPUTS = (LATENT_TENSOR, "f0", DURATION_TENSOR)
SPECTRA = ("harmonic_cos", "harmonic_sin", "noise", "free_cos", "free_sin")

Weights = dict[str, npt.NDArray[Any]]


def extract_backbone(source: onnx.ModelProto) -> onnx.ModelProto:
    """ids int64 [1, L], speed float32 [1] -> latents [1, 130, F], f0 [1, F] Hz, frames per id."""
    import onnx.utils

    extractor = onnx.utils.Extractor(source)
    return extractor.extract_model(list(BACKBONE_INPUTS), list(BACKBONE_OUTPUTS))


def build_decoder(source: onnx.ModelProto) -> onnx.ModelProto:
    """Streaming decoder with the weights of ``source``.

    Inputs, float32: ``latents`` [B, W, 130]; ``left0`` [B, S, 130] and ``left1..8`` [B, S, 256],
    the frames that precede in front of each convolution (S = 6 when streaming, 0 at a start);
    ``valid0..7`` [B, V, 1], 1 inside the segment and 0 outside, for the output of each of the
    first eight layers (their width shrinks by 6 per layer when S is 0). Outputs: ``SPECTRA``,
    each [B, V, 608] of which the first 601 bins count (vector code rounds the odd elements at an
    array's end differently, so rows of whole vectors make a row independent of its neighbours);
    then ``right0..8``, the next call's ``left``.
    """
    from onnx import numpy_helper

    weights = {item.name: numpy_helper.to_array(item) for item in source.graph.initializer}
    return _DecoderGraph(weights).build()


class _DecoderGraph:
    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def build(self) -> onnx.ModelProto:
        from onnx import helper

        self._declare_constants()
        flow = self._layer_in()
        for block in range(BLOCKS):
            flow = self._block(block, self._mask(block, flow))
        self._head(flow)
        graph = helper.make_graph(
            self._nodes, "decoder", self._inputs, self._outputs, self._constants
        )
        opsets = [helper.make_opsetid("", 20)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _declare_constants(self) -> None:
        reach = KERNEL // 2
        self._constant("axis", np.array([1], np.int64))
        self._constant("inner", np.array([reach], np.int64))
        self._constant("outer", np.array([-reach], np.int64))
        self._constant("newest", np.array([1 - KERNEL], np.int64))
        self._constant("end", np.array([1 << 31], np.int64))

    def _layer_in(self) -> str:
        self._input("latents", ["batch", "frames", LATENTS])
        seen = self._with_left_context(0, "latents", LATENTS)
        weight = self._constant("in_weight", self._weights["m.dec_in.weight"])
        bias = self._constant("in_bias", self._weights["m.dec_in.bias"])
        return self._convolve("in", seen, weight, bias, groups=1)

    def _block(self, block: int, flow: str) -> str:
        prefix, name = f"m.dec.{block}.", f"block{block}"
        seen = self._with_left_context(block + 1, flow, CHANNELS)
        weight = self._constant(f"{name}_depth_weight", self._weights[prefix + "dw.weight"])
        bias = self._constant(f"{name}_depth_bias", self._weights[prefix + "dw.bias"])
        local = self._convolve(name, seen, weight, bias, groups=CHANNELS)
        normed = self._layer_norm(name, prefix + "norm", local)
        wide = self._linear(
            f"{name}_wide",
            normed,
            self._dequantised(f"/dec.{block}/pw1"),
            self._weights[prefix + "pw1.bias"],
        )
        bent = self._node("Gelu", [wide], f"{name}_bent")
        gain = self._weights[prefix + "gamma"].reshape(-1)
        narrow = self._linear(
            f"{name}_narrow",
            bent,
            self._dequantised(f"/dec.{block}/pw2") * gain,
            self._weights[prefix + "pw2.bias"] * gain,
        )
        kept = self._node("Slice", [seen, "inner", "outer", "axis"], f"{name}_kept")
        return self._node("Add", [kept, narrow], f"{name}_out")

    def _head(self, flow: str) -> None:
        normed = self._layer_norm("head", "m.dec_norm", flow)
        parts = self._linear(
            "head_linear",
            normed,
            _pad_bins(self._dequantised("/head")),
            _pad_bins(self._weights["m.head.bias"]),
        )
        sizes = self._constant("sizes", np.full(len(SPECTRA), PADDED_BINS, np.int64))
        names = ["log_harmonic", "turn", "log_noise", "log_free", "phase"]
        self._nodes.append(_node("Split", [parts, sizes], names, axis=-1))
        self._constant("loudest", np.float32(7.0))
        harmonic = self._magnitude("log_harmonic")
        noise = self._magnitude("log_noise")
        free = self._magnitude("log_free")
        turned = self._node("Tanh", ["turn"], "turn_bounded")
        angle = self._node("Mul", [turned, self._constant("pi", np.float32(np.pi))], "angle")
        self._polar("harmonic", harmonic, angle)
        self._polar("free", free, "phase")
        self._node("Identity", [noise], "noise")
        outputs = [_tensor(name, ["batch", "new", PADDED_BINS]) for name in SPECTRA]
        self._outputs[:0] = outputs

    def _magnitude(self, name: str) -> str:
        bounded = self._node("Min", [name, "loudest"], f"{name}_bounded")
        return self._node("Exp", [bounded], f"{name}_magnitude")

    def _polar(self, name: str, magnitude: str, angle: str) -> None:
        for function in ("Cos", "Sin"):
            part = f"{name}_{function.lower()}"
            self._node(function, [angle], f"{part}_unit")
            self._node("Mul", [f"{part}_unit", magnitude], part)

    def _with_left_context(self, layer: int, flow: str, channels: int) -> str:
        self._input(f"left{layer}", ["batch", "context", channels])
        seen = self._node("Concat", [f"left{layer}", flow], f"seen{layer}", axis=1)
        self._node("Slice", [seen, "newest", "end", "axis"], f"right{layer}")
        self._outputs.append(_tensor(f"right{layer}", ["batch", KERNEL - 1, channels]))
        return seen

    def _mask(self, layer: int, flow: str) -> str:
        self._input(f"valid{layer}", ["batch", f"frames{layer}", 1])
        return self._node("Mul", [flow, f"valid{layer}"], f"masked{layer}")

    def _convolve(self, name: str, flow: str, weight: str, bias: str, *, groups: int) -> str:
        first = self._node("Transpose", [flow], f"{name}_channels_first", perm=[0, 2, 1])
        out = self._node(
            "Conv", [first, weight, bias], f"{name}_conv", group=groups, kernel_shape=[KERNEL]
        )
        return self._node("Transpose", [out], f"{name}_channels_last", perm=[0, 2, 1])

    def _layer_norm(self, name: str, weights: str, flow: str) -> str:
        scale = self._constant(f"{name}_norm_scale", self._weights[weights + ".weight"])
        shift = self._constant(f"{name}_norm_shift", self._weights[weights + ".bias"])
        return self._node(
            "LayerNormalization", [flow, scale, shift], f"{name}_normed", axis=-1, epsilon=1e-5
        )

    def _linear(
        self, name: str, flow: str, weight: npt.NDArray[Any], bias: npt.NDArray[Any]
    ) -> str:
        product = self._node(
            "MatMul", [flow, self._constant(f"{name}_weight", weight)], f"{name}_product"
        )
        return self._node("Add", [product, self._constant(f"{name}_bias", bias)], name)

    def _dequantised(self, layer: str) -> npt.NDArray[np.float32]:
        name = f"{layer}/Transpose_output_0"
        steps = self._weights[f"{name}_quantized"].astype(np.float32)
        zero = self._weights[f"{name}_zero_point"].astype(np.float32)
        scaled: npt.NDArray[np.float32] = (steps - zero) * self._weights[f"{name}_scale"]
        return scaled

    def _constant(self, name: str, value: npt.NDArray[Any] | np.float32) -> str:
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(_node(kind, inputs, [output], **attributes))
        return output

    def _input(self, name: str, shape: list[str | int]) -> None:
        self._inputs.append(_tensor(name, shape))


def _pad_bins(head: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Columns of the head, [..., 5 * 601] to [..., 5 * 608]."""
    parts = head.reshape(*head.shape[:-1], len(SPECTRA), BINS)
    widths = [(0, 0)] * (parts.ndim - 1) + [(0, PADDED_BINS - BINS)]
    return np.pad(parts, widths).reshape(*head.shape[:-1], -1)


def _node(kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, inputs, outputs, **attributes)


def _tensor(name: str, shape: list[str | int]) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
