"""What virtual users want spoken. All of it was written for this project.

``draw`` gives one text by kind. For models with random weights, whose speech does not end by
itself, ``frames`` draws a length instead and the text is cut to it.
"""

import math
import random
from collections.abc import Sequence
from enum import StrEnum

FRAME_SECONDS = 0.08
"""One step of the neural codec."""
MEAN_FRAMES = 71
FEWEST_FRAMES, MOST_FRAMES = 12, 190
SPREAD = 0.5
"""Standard deviation of the logarithm of the lengths."""
WORDS_PER_SECOND = 2.6
"""Pace of read English, about 156 words a minute."""

CONVERSATION = (
    "The kettle is already on.",
    "Could you say that again, please?",
    "I left your keys beside the radio.",
    "We should be there before the rain starts.",
    "That sounds like a reasonable plan to me.",
    "Nobody told me the shop closes early on Mondays.",
    "Your table is ready, so please follow me to the window.",
    "I have moved your appointment to Thursday afternoon.",
    "Take the second exit and stay in the left lane.",
    "The parcel was handed to your neighbour an hour ago.",
    "Would you like me to read the message out loud?",
    "There is a short queue, but it is moving quickly.",
    "Sorry, I did not catch the name of the street.",
    "The blue one costs a little more and lasts much longer.",
    "Let me check whether there are seats left on the early train.",
    "He forgot his umbrella again, and of course it poured all evening.",
    "Your order has been packed and will leave the warehouse tonight.",
    "Turn the dial slowly until you hear a soft click.",
    "I would rather walk, because the bus is full at this hour.",
    "She keeps a jar of buttons on the shelf above the sewing machine.",
    "Please hold the line while I find someone who can help you.",
    "The museum is free on the first Sunday of the month.",
    "If the light stays red, unplug the box and count to ten.",
    "My sister bakes bread every Saturday and gives half of it away.",
    "You can cancel at any time, and we will not ask why.",
    "The trail follows the river for a mile and then climbs to the chapel.",
    "Good morning, and thank you for waiting so patiently.",
    "It is warmer than yesterday, though the wind has picked up since noon.",
    "Two of the lamps are broken, so the hallway will be dark tonight.",
    "Wash the lentils, cover them with water, and let them simmer gently.",
    "The doctor will call you back as soon as the results have arrived.",
    "I think the second verse is better than the first, but both need a rhyme.",
    "Remember to water the tomatoes before the sun gets too strong.",
    "Your balance has been updated, and a receipt is on its way.",
    "The ferry waits for no one, least of all for us.",
    "They painted the fence green and then decided that they preferred white.",
    "Press the star key when you have finished speaking.",
    "We found a small café behind the station that serves excellent soup.",
    "The meeting has been shortened to half an hour at the request of the team.",
    "Once the dough has doubled in size, fold it twice and leave it alone.",
)

LONG_FORM = (
    "The lighthouse had been dark for eleven years when the letter came. It was written in a "
    "neat hand on thick paper, and it asked, very politely, whether the lamp could be lit for "
    "a single night. Martha read it twice at the kitchen table. Then she put on her coat, "
    "took the big key from its nail, and walked down to the harbour to find somebody with a "
    "boat. The wind had turned, the gulls were quarrelling over the nets, and old Piet was "
    "asleep on a coil of rope.",
    "A buffer is a promise about the near future. While there is sound in it, nothing has to "
    "happen in a hurry, and the machine that makes the sound may spend its time on someone "
    "else. When the buffer grows thin, the promise becomes urgent. The whole art of serving "
    "many listeners at once lies in knowing which promises are about to be broken, and in "
    "keeping those first.",
    "To repot the fig, choose a container only slightly wider than the old one. Loosen the "
    "roots with your fingers, trim those that circle the bottom, and set the plant at the "
    "same depth as before. Fill the gaps with fresh soil and press it down lightly. Water it "
    "well, let it drain, and keep it out of the midday sun for about two weeks. New leaves "
    "are a sign that it has settled.",
    "The valley railway was never meant to last. It was built in one summer, by men who were "
    "paid by the yard, to carry stone for a dam that was finished before the track was. Yet "
    "the trains kept running, first for the quarrymen, then for the school, and at last for "
    "visitors who came to see the bridges. Each spring the same three people walk the line "
    "and tighten every bolt by hand.",
)

CODE_SWITCHING = (
    "Flight LH 437 now boards at gate B22, not A7.",
    "Your PIN ends in 0042; it expires on 31 Dec 2027.",
    "Dr. Okafor will see you at 9:45 a.m. in room 3.1.",
    "The total is $1,284.50, incl. 7.5% VAT.",
    "Call +44 20 7946 0018 and ask for ext. 12.",
    "It is -4 °C outside, i.e. about 25 °F.",
    "The API returned HTTP 503 after 30 s, so we retried 4x.",
    "Meet us at No. 17 Rue de Rivoli, near the Métro.",
    "Version 2.10.3 fixes CVE-2024-0001 on x86_64.",
    "She scored 3-1 vs. FC Köln in the 87th min.",
    "Add 1/2 tsp. of salt and 250 ml of crème fraîche.",
    "On 04/07 the NASDAQ rose by 1.2%, the DAX by 0.3%.",
    "Invoice #A-1093 (EUR 99.99) is due in 14 days.",
    "The train leaves Gleis 9 at 18:05 Uhr, says the app.",
    "My e-mail is j.doe99@example.org, all lower case.",
    "Chapter IV, p. 212: the GDP grew from 3.4 to 3.9 bn.",
)


class Kind(StrEnum):
    """Which set of texts."""

    CONVERSATION = "conversation"
    LONG_FORM = "long"
    CODE_SWITCHING = "codes"
    FRAMES = "frames"  # cut to a drawn length


SETS: dict[Kind, Sequence[str]] = {
    Kind.CONVERSATION: CONVERSATION,
    Kind.LONG_FORM: LONG_FORM,
    Kind.CODE_SWITCHING: CODE_SWITCHING,
}


def draw(rng: random.Random, kind: Kind) -> str:
    """One text of a kind; of :attr:`Kind.FRAMES`, as long as a drawn number of frames."""
    return of_length(rng, frames(rng)) if kind is Kind.FRAMES else rng.choice(SETS[kind])


def frames(rng: random.Random) -> int:
    """Length of an utterance: lognormal with a mean of 71 frames, clipped to 12..190."""
    middle = math.log(MEAN_FRAMES) - SPREAD**2 / 2
    return min(MOST_FRAMES, max(FEWEST_FRAMES, round(rng.lognormvariate(middle, SPREAD))))


def of_length(rng: random.Random, count: int) -> str:
    """Sentences of the conversation, cut to what ``count`` frames of speech hold."""
    wanted = max(1, round(count * FRAME_SECONDS * WORDS_PER_SECOND))
    words: list[str] = []
    while len(words) < wanted:
        words += rng.choice(CONVERSATION).split()
    return " ".join(words[:wanted]).rstrip(".,;?") + "."
