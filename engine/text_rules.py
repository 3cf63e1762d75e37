# ruff: noqa: RUF001
"""Word and character tables of the segmenter (English)."""

TERMINALS = frozenset(".!?…。！？")
CLOSERS = frozenset("\"')]}”’»")

_NEVER_FINAL = (
    "Mr Mrs Ms Mx Dr Prof St Mt Ft Gen Gov Sen Rep Capt Lt Col Sgt Cmdr Rev Hon Pres Supt Cpl Maj "
    "Adm Fr Msgr e.g E.g i.e I.e eg ie cf vs Vs viz al approx Approx ca Fig Figs fig figs Vol vol "
    "pp Ch ch Eq eq Nos nos ed eds est incl excl"
)
_FINAL_DOT = (
    "etc Etc Inc Ltd Co Corp Bros Jr Sr Ave Blvd Rd Ln Hwy Pkwy Apt Ste Bldg Dept Univ Assn Govt "
    "No no Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thurs Fri Sat Sun "
    "am pm AM PM min max sec hr hrs mins ft oz lb lbs"
)
_STARTERS = (
    "The A An This That These Those There Here It It's Its He He's She She's We We're You You're "
    "They They're I I'm I'll I've I'd My Your His Her Our Their In On At By For From With To "
    "Of As If When While Where Who Who's What What's Why How Which Because Since Although Though "
    "However But And Or So Then Now After Before Until Once Yes Yeah Okay OK Well Oh Also Still "
    "Yet Please Let Let's Do Does Did Is Are Was Were Can Could Will Would Should Shall May Might "
    "Must Have Has Had Not Don't Some All Many Most Each Every Both Another Other Meanwhile "
    "Finally First Second Next Maybe Perhaps Thanks Thank Sorry That's There's"
)

NEVER_FINAL = frozenset(_NEVER_FINAL.split())
"""Abbreviations that something always follows."""
FINAL_DOT = frozenset(_FINAL_DOT.split())
"""Abbreviations and words that may end a sentence or not: the next word decides."""
STARTERS = frozenset(_STARTERS.split())
"""Capitalised words that begin a sentence far more often than a name."""
