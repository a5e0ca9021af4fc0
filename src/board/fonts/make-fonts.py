"""Makes the fonts of the board from whole ones: Inter from the npm package inter-ui 4.1.1 (variable/InterVariable.woff2),
JetBrains Mono from @expo-google-fonts/jetbrains-mono 0.4.1 (400Regular/JetBrainsMono_400Regular.ttf).

    pip install fonttools==4.66.1 brotli==1.2.0
    python make-fonts.py InterVariable.woff2 JetBrainsMono_400Regular.ttf
"""
from io import BytesIO
from pathlib import Path
from sys import argv

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ASCII = set(range(0x20, 0x7F))
# Latin-1 and Latin Extended-A, punctuation with thin spaces, and signs. Other text has a font of the system.
TEXT = ASCII | set(range(0xA0, 0x180)) | set(map(ord, "–—…‘’“”·•‹›\u2009\u200a\u202f€−×≈≥≤±√←↑→↓↗▲▼★☆●○⚠"))
CODE = ASCII | set(map(ord, "\u00a0…–→·"))


def write(font, characters, features, name):
    options = Options(layout_features=features, hinting=False, notdef_outline=True, name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(Path(__file__).with_name(name))


def reopened(font):
    file = BytesIO()
    font.save(file)
    return TTFont(file, recalcTimestamp=False)


inter = reopened(instantiateVariableFont(TTFont(argv[1], recalcTimestamp=False), {"opsz": 14, "wght": (400, 600)}))
# All figures are equally wide, also on the canvas of the chart, which cannot ask for them.
for digit in range(ord("0"), ord("9") + 1):
    wide = inter.getBestCmap()[digit] + ".tf"
    for table in inter["cmap"].tables:
        if digit in table.cmap:
            table.cmap[digit] = wide
write(inter, TEXT, ["kern", "mark", "mkmk", "ccmp", "locl"], "inter.woff2")
write(TTFont(argv[2], recalcTimestamp=False), CODE, ["ccmp", "mark"], "jetbrains-mono.woff2")
