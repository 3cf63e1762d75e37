"""Choosing codes on the device: penalty, bans, temperature, top-k, top-p.

Random numbers are a function of (seed, frame, codebook) alone: a stream's choices do not depend on
its batch mates, on its slot, or on when it was stepped.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3779B9


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a code is drawn. ``top_k`` 0: no limit. ``greedy`` takes the best and ignores the rest
    but the repetition penalty, which divides positive and multiplies negative logits of codes
    that were generated before (arXiv 1909.05858, section 4.1)."""

    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    greedy: bool = False

    def __post_init__(self) -> None:
        if not self.temperature > 0.0:
            raise ValueError(f"temperature {self.temperature} must be above 0")
        if self.top_k < 0:
            raise ValueError(f"top_k {self.top_k} must be 0 (no limit) or more")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p {self.top_p} must be above 0 and at most 1")
        if not self.repetition_penalty > 0.0:
            raise ValueError(f"repetition_penalty {self.repetition_penalty} must be above 0")


def uniforms(seeds: Tensor, frames: Tensor, streams: int) -> Tensor:
    """Numbers in [0, 1), float32 [B, streams], from int64 ``seeds`` and ``frames`` [B].

    Counters go through a 32-bit mixing function (two rounds of xor-shift and multiply); each
    number has 24 random bits.
    """
    lanes = torch.arange(streams, device=seeds.device, dtype=torch.int64)
    key = _mix(seeds & _MASK) ^ ((seeds >> 32) & _MASK)
    key = _mix(key + _GOLDEN * (frames + 1))
    bits = _mix(_mix(key[:, None] + _GOLDEN * (lanes + 1)) ^ key[:, None])
    return (bits >> 8).to(torch.float32) * (1.0 / (1 << 24))


def penalise(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Repetition penalty on float32 ``logits`` [B, V] where ``seen`` (bool [B, V])."""
    if penalty == 1.0:
        return logits
    punished = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(seen, punished, logits)


def draw(logits: Tensor, rule: Sampling, uniform: Tensor) -> Tensor:
    """One code per row: int64 [B] from ``logits`` [B, V], float32 or to be it, and ``uniform`` [B].

    Impossible codes carry minus infinity. The cumulative distribution over the sorted candidates
    is inverted at ``uniform``, so one number decides a row.
    """
    if rule.greedy:
        return logits.argmax(-1)
    wanted = min(rule.top_k or logits.shape[-1], logits.shape[-1])
    best, codes = torch.topk(logits.float() / rule.temperature, wanted, dim=-1)
    shares = torch.softmax(best, dim=-1)
    reached = shares.cumsum(-1)
    if rule.top_p < 1.0:
        # A candidate stays when those before it have not reached top_p yet.
        shares = shares.masked_fill(reached - shares >= rule.top_p, 0.0)
        reached = shares.cumsum(-1)
    goal = uniform[:, None] * reached[:, -1:]
    # The last candidate with any share bounds the search: rounding must not go past it. A row of
    # NaN has none, and an index below zero would end every stream on the device.
    possible = ((shares > 0.0).sum(-1, keepdim=True) - 1).clamp(min=0)
    chosen = torch.minimum((reached <= goal).sum(-1, keepdim=True), possible)
    return codes.gather(-1, chosen).squeeze(-1)


def _mix(x: Tensor) -> Tensor:
    """Avalanche of the low 32 bits held in int64; products wrap, and only the low bits count."""
    x = x & _MASK
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK
    return x ^ (x >> 16)
