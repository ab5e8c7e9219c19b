#!/usr/bin/env python3
"""Short sentences of six topics for text classification.

    topics.py --out models/data/topics.csv --count 200 --seed 2      columns text,label

A sentence fills a template with words of its topic, words that several topics share, and sometimes words of another topic.
Some words are misspelled, and a tenth of each list occurs in held-out sentences only, so that not every one can be told.
"""
import argparse
import csv
import random
import re
from pathlib import Path

LABELS = ["weather", "sport", "food", "travel", "music", "science"]
TEST_SEED, TRAIN_SEED = 2, 1
TRAINING = 60000          # sentences

NOUNS = {
    "weather": "rain snow wind storm fog hail thunder sunshine frost drizzle breeze cloud heatwave humidity lightning "
               "temperature forecast rainbow blizzard sleet",
    "sport": "match goal team coach player league referee trophy stadium race runner tennis football swimmer final season "
             "penalty record champion training",
    "food": "soup bread cheese salad recipe oven chef sauce pepper dinner pasta onion dessert kitchen spice butter rice "
            "lunch breakfast tomato",
    "travel": "hotel flight train passport beach airport luggage island tour ticket museum hostel border cruise map guide "
              "station suitcase visa harbor",
    "music": "song guitar piano band album concert singer drum melody chorus violin orchestra rhythm choir lyrics "
             "festival tune trumpet studio bass",
    "science": "experiment atom planet cell theory telescope laboratory molecule energy gravity physicist data protein "
               "orbit microscope species hypothesis galaxy reaction genome"}
VERBS = {
    "weather": "cleared poured froze cooled thawed darkened soaked faded gathered settled",
    "sport": "scored won lost trained tackled sprinted defended qualified competed dribbled",
    "food": "cooked baked tasted served fried chopped boiled seasoned ate grilled",
    "travel": "boarded landed packed departed visited booked toured arrived sailed wandered",
    "music": "played sang recorded rehearsed performed tuned composed strummed hummed mixed",
    "science": "measured observed discovered tested computed predicted published analyzed proved dissolved"}
ADJECTIVES = {
    "weather": "cloudy sunny freezing windy humid stormy mild icy", "sport": "athletic unbeaten injured fast offside sporty fit fierce",
    "food": "delicious salty sweet crispy spicy fresh bitter hungry", "travel": "foreign scenic distant tropical crowded remote coastal exotic",
    "music": "loud acoustic melodic rhythmic catchy live classical quiet",
    "science": "chemical quantum biological scientific magnetic nuclear genetic solar"}
SHARED_NOUNS = ("day night morning evening city people weekend summer winter mountain water fire light score sound team "
                "field season heat wave air pressure record star record scale note plate course bank").split()
SHARED_VERBS = "changed started stopped moved fell rose broke ran beat left came turned".split()
SHARED_ADJECTIVES = "great small new old long cold hot dry bright heavy light perfect strange high".split()
PLACES = "in the north;near the coast;at home;in town;across the valley;last week;this afternoon;on friday;after noon;" \
         "before dawn;for hours;again;without warning;as expected".split(";")
TEMPLATES = ["the {adjective} {noun} {verb} {place}", "we {verb} the {noun} and the {noun} {place}",
             "a {noun} {verb} while the {noun} was {adjective}", "{place} the {noun} {verb}",
             "my friend talked about the {adjective} {noun}", "why was the {noun} so {adjective} ?",
             "they said the {noun} {verb} {place}", "the {noun} of the {noun} {verb}",
             "everyone liked the {noun} , it was {adjective}", "there was a {adjective} {noun} {place}",
             "no {noun} {verb} {place} , only the {noun}", "it {verb} and the {noun} stayed {adjective}"]
OWN, OTHER = 0.58, 0.05   # probability that a word is of the topic, of another one; otherwise a shared one
MISSPELLED = 0.04
HIDDEN = 10               # every tenth word of a list is not in the training


def choose(rng, lists, shared, topic, is_test):
    draw = rng.random()
    if draw >= OWN + OTHER:
        return rng.choice(shared)
    of = topic if draw < OWN else rng.choice([label for label in LABELS if label != topic])
    words = lists[of].split()
    return rng.choice([word for index, word in enumerate(words) if is_test or index % HIDDEN != HIDDEN - 1])


def misspell(rng, word):
    if len(word) < 4 or rng.random() >= MISSPELLED:
        return word
    at = rng.randrange(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2:]


def sentence(rng, is_test=False):
    """Text and label."""
    topic = rng.choice(LABELS)
    parts = {"noun": (NOUNS, SHARED_NOUNS), "verb": (VERBS, SHARED_VERBS), "adjective": (ADJECTIVES, SHARED_ADJECTIVES)}

    def fill(match):
        if match[1] == "place":
            return rng.choice(PLACES)
        return choose(rng, *parts[match[1]], topic, is_test)
    text = " ".join(re.sub(r"\{(\w+)\}", fill, rng.choice(TEMPLATES)) for _ in range(rng.choice([1, 2, 2])))
    return " ".join(misspell(rng, word) for word in text.split()), topic


def words_of(text):
    """Lower-case words, and punctuation marks as words of their own."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def dataset(count, seed, is_test=False):
    rng = random.Random(seed)
    return [sentence(rng, is_test) for _ in range(count)]


def held_out(count, seed):
    """Sentences that the training does not have."""
    seen = {text for text, _ in dataset(TRAINING, TRAIN_SEED)}
    return [row for row in dataset(2 * count, seed, is_test=True) if row[0] not in seen][:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with open(options.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "label"])
        writer.writerows(held_out(options.count, options.seed))


if __name__ == "__main__":
    main()
