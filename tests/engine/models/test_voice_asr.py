from collections.abc import Callable

import numpy as np
import pytest
from asr import normalise_words, transcribe, word_error_rate
from voice_kit import Speech

RATE = 24000
SENTENCES = [
    "Hello, this is a streaming voice gateway, and it never stalls.",
    "Please call Dr. Smith at 3:30 pm on Tuesday.",
    "It costs $5.99, which is 20% less than before.",
    "How much wood would a woodchuck chuck?",
    "On March 3rd, 1984, about 1,250 people came to London.",
    "Paris, Berlin and Madrid are capitals of Europe.",
    "Did you remember to bring the keys?",
    "The quick brown fox jumps over the lazy dog.",
    "Turn left at the next corner, then walk for two miles.",
    "My name is Alice and I live in Boston.",
    "What time does the train to Manchester leave?",
    "Thank you very much for your patience!",
    "The temperature is 72 degrees today.",
    "The meeting was moved to room 14. Please bring your notes.",
]


@pytest.mark.slow
def test_speech_is_understood(say: Callable[..., Speech]) -> None:
    errors, words, misheard = 0.0, 0, []
    # The recognizer works on half a minute at a time, whatever it is given.
    for first in range(0, len(SENTENCES), 5):
        group = SENTENCES[first : first + 5]
        pause = np.zeros(RATE // 2, np.float32)
        sound = [np.append(say(sentence, chunks=(8, 16, 32)).pcm, pause) for sentence in group]
        heard, text = transcribe(np.concatenate(sound), RATE), " ".join(group)
        count = len(normalise_words(text))
        rate = word_error_rate(text, heard)
        errors, words = errors + rate * count, words + count
        if rate:
            misheard.append((text, heard))
    assert errors / words <= 0.10, misheard
