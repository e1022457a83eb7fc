"""Texts for comparisons: seeded, of many lengths and languages."""

import random

SUBJECTS = (
    "The old lighthouse", "A quiet engineer", "The city council", "My neighbour's dog", "The train to Lyon",
    "A new vaccine", "The compiler", "Her grandmother", "The coral reef", "An unpaid invoice",
)  # fmt: skip
VERBS = (
    "survived the storm", "was finally repaired", "surprised everybody", "cost far too much",
    "stopped working last night", "was described in a letter", "needs more water", "was sold twice",
)  # fmt: skip
ENDS = (
    "without anyone noticing", "because of the heat", "before the elections", "at the end of a long winter",
    "although the manual said otherwise", "in front of three hundred people", "for no good reason",
)  # fmt: skip
OTHERS = (
    "Der Zug nach Hamburg hat heute vierzig Minuten Verspätung.",
    "Wo finde ich eine Apotheke, die am Sonntag geöffnet ist?",
    "Le chat dort sur le canapé pendant que la pluie tombe.",
    "¿Cuánto cuesta un billete de ida y vuelta a Sevilla?",
    "Bugün hava çok güzel, sahile yürüyelim mi?",
    "今天的天气很好，我们去公园散步吧。",
    "新しい電車の時刻表はどこで見られますか。",
    "Сколько времени нужно, чтобы выучить русский язык?",
    "أين يقع أقرب مستشفى من هنا؟",
    "오늘 저녁에 뭐 먹을까요?",
    "def mean(values): return sum(values) / len(values)",
    "SELECT name, COUNT(*) FROM orders GROUP BY name HAVING COUNT(*) > 3;",
    "error[E0382]: borrow of moved value: `texts`",
    "🙂👍 that went well!!!",
    "https://example.org/a/b?c=1&d=%20",
    "3.14159 26535 89793 23846",
    "a",
    "?",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "",
)  # fmt: skip
QUERIES = {
    "How many people live in Berlin?": "Berlin had 3.5 million registered inhabitants in 2016.",
    "What is the capital of France?": "Paris has been the capital of France since 987.",
    "How do I reset my router?": "Hold the small button at the back of the router for ten seconds.",
    "Why is the sky blue?": "Air scatters short wavelengths of sunlight more than long ones.",
    "When was the telephone invented?": "Bell was granted a patent on the telephone in 1876.",
    "What do pandas eat?": "Almost all of a panda's food is bamboo.",
    "How long do eggs need to boil?": "A soft egg takes six minutes in boiling water, a hard one ten.",
    "Who wrote Faust?": "Johann Wolfgang von Goethe worked on Faust for sixty years.",
    "What causes tides?": "The moon's gravity pulls the oceans into two bulges.",
    "How can I learn to play the piano?": "Start with scales and simple songs, and practise daily.",
    "What is a borrow checker?": "The compiler of Rust proves that no reference outlives its value.",
    "Is olive oil healthy?": "Studies connect olive oil with a lower risk of heart disease.",
    "How far away is the moon?": "On average 384,400 kilometres lie between us and the moon.",
    "What is inflation?": "When prices rise in general, money buys less: that is inflation.",
    "How do vaccines work?": "A vaccine shows the immune system what to look out for.",
    "Where do penguins live?": "Penguins are found almost only in the southern hemisphere.",
    "How do I remove red wine stains?": "Salt and cold water take fresh red wine out of cloth.",
    "What does HTTP 404 mean?": "The server answers 404 where it knows no such page.",
    "How do bees make honey?": "Bees thicken nectar in their combs until it is honey.",
    "What is the fastest animal?": "In a dive a peregrine falcon is faster than any other animal.",
}


def sentence(draw: random.Random) -> str:
    return f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(ENDS)}."


def texts() -> list[str]:
    """Two hundred, from none to some hundreds of tokens."""
    draw = random.Random(1)
    made = list(OTHERS)
    while len(made) < 200:
        sentences = draw.choice((1, 1, 1, 2, 3, 6, 15))
        made.append(" ".join(sentence(draw) for _ in range(sentences)))
    return made


def rankings() -> list[tuple[str, list[str]]]:
    """Twenty queries with ten documents each, of which one answers."""
    draw = random.Random(2)
    answers = list(QUERIES.values())
    made = []
    for query, answer in QUERIES.items():
        others = draw.sample([each for each in answers if each != answer], 6)
        documents = [answer, *others, *(sentence(draw) for _ in range(3))]
        draw.shuffle(documents)
        made.append((query, documents))
    return made
