# ruff: noqa: RUF001
"""Characters the voice reads as they are, and readings for some it does not know."""

LETTERS = frozenset(
    "ªº²³¹ß"
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ"
    "ĀāĂăĄąĆćČčĎďĐđĒēĖėĘęĚěĞğĪīİıŁłŃńŇňŌōŐőŒœŘřŚśŞşŠšŤťŪūŮůŰűŹźŻżŽžƠơƯưȘșȚț"
)
"""Beyond ASCII: Latin letters that its net for unknown words has seen."""

SYMBOLS = frozenset("“”‘’…—–€£¥₹₩¢°§¶±×÷©½¼¾→")
"""Beyond ASCII; its text normaliser knows them."""

READINGS = {
    "\u00a0": " ",
    "\u00ad": "",
    "™": "",
    "®": "",
    "•": "",
    "←": "",
    "∞": " infinity ",
    "≈": " approximately ",
    "≠": " is not equal to ",
    "≤": " at most ",
    "≥": " at least ",
    "√": " square root of ",
    "−": "-",
    "⁄": "/",
    "∕": "/",
    "№": " number ",
    "℃": " degrees Celsius ",
    "℉": " degrees Fahrenheit ",
    "₿": " bitcoin ",
    "₽": " rubles ",
    "₺": " lira ",
    "₪": " shekels ",
    "฿": " baht ",
    "⅓": " one third ",
    "⅔": " two thirds ",
    "⅛": " one eighth ",
    "µ": "μ",
    "‐": "-",
    "‑": "-",
    "‒": "-",
    "―": "—",
    "„": "“",
    "‚": "'",
    "«": "“",
    "»": "”",
    "‹": "'",
    "›": "'",
    "′": "'",
    "″": '"',
    "、": ",",
    "。": ".",
    "，": ",",
    "！": "!",
    "？": "?",
    "：": ":",
    "；": ";",
    "،": ",",
    "؛": ";",
    "؟": "?",
    "۔": ".",
    "।": ".",
    "¿": "",
    "¡": "",
    "·": " ",
}

_CYRILLIC = (
    "а=a б=b в=v г=g д=d е=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh "
    "ц=ts ч=ch ш=sh щ=shch ъ= ы=y ь= э=e ю=yu я=ya ё=yo і=i ї=yi є=ye ґ=g"
)
_GREEK = (
    "α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f "
    "χ=ch ψ=ps ω=o ά=a έ=e ή=i ί=i ό=o ύ=y ώ=o"
)
TRANSLITERATION = dict(pair.split("=") for pair in f"{_CYRILLIC} {_GREEK}".split())
"""Lower-case letters of scripts that are read by their Latin spelling."""
