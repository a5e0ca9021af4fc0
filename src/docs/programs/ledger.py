"""Keeps a ledger of one token in a SQLite file, and proves it block by block. Arguments: token, URL of the relay, file."""
import hashlib, http.client, json, os, random, sqlite3, sys, time, urllib.error
from urllib.parse import parse_qsl, urlencode
from urllib.request import build_opener

TOKEN, URL, FILE = sys.argv[1:] + ["AAPLc", "http://127.0.0.1:8080", None][len(sys.argv) - 1 :]
MOVEMENTS = ["transfer", "mint", "burn", "seize"]
TYPES = ",".join(MOVEMENTS + ["seal", "retract", "amend", "hole", "finality"])
ZERO = "0x" + 40 * "0"  # Mints are from this address, and burns are to it.
HEARTBEAT_S, RETRY_S, RETRIES_BOUND, DOUBTS_BOUND = 5, 0.5, 6, 100

if set(TOKEN) & set(",*"):
    sys.exit("A ledger has one token.")
db = sqlite3.connect(FILE or f"{TOKEN}.sqlite")
db.executescript("""PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, block INTEGER, sealed INTEGER, sender TEXT, receiver TEXT, raw TEXT);
CREATE INDEX IF NOT EXISTS facts_of_block ON facts (block);
CREATE INDEX IF NOT EXISTS open_facts ON facts (block) WHERE NOT sealed;
CREATE TABLE IF NOT EXISTS balances (account TEXT PRIMARY KEY, raw TEXT); -- changes since the block `begin`
CREATE TABLE IF NOT EXISTS doubts (place TEXT PRIMARY KEY, why TEXT); -- where the ledger may be wrong
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value); -- token, begin, start, position, finalized, `last <type>`""")
web, attempts, retry_s = build_opener(), 0, 0.0
web.addheaders = [("Authorization", f"Bearer {os.environ['STOCKTAPE_KEY']}")] if "STOCKTAPE_KEY" in os.environ else []


def one(query, *values):
    return (db.execute(query, values).fetchone() or [None])[0]


def get(name):
    return one("SELECT value FROM state WHERE name = ?", name)


def put(name, value):
    db.execute("REPLACE INTO state (name, value) VALUES (?, ?)", [name, value])


def doubt(place, why):
    place = place if one("SELECT count(*) FROM doubts") < DOUBTS_BOUND else "later"  # This one is never cleared.
    db.execute("REPLACE INTO doubts (place, why) VALUES (?, ?)", [place, why])


def is_up_to(place, other):
    (epoch, seq), (other_epoch, other_seq) = place.split("."), other.split(".")
    return epoch == other_epoch and int(seq) <= int(other_seq)


def move(sender, receiver, raw):
    for account, change in (sender, -raw), (receiver, raw):
        balance = int(one("SELECT raw FROM balances WHERE account = ?", account) or 0)
        db.execute("REPLACE INTO balances (account, raw) VALUES (?, ?)", [account, str(balance + change)])


def unbook(key):
    for sender, receiver, raw in db.execute("SELECT sender, receiver, raw FROM facts WHERE key = ?", [key]).fetchall():
        move(receiver, sender, int(raw))
    db.execute("DELETE FROM facts WHERE key = ?", [key])


def book(key, fact):
    block, sealed = int(key.split("-")[0]), one("SELECT sealed FROM facts WHERE key = ?", key) or 0
    unbook(key)
    if fact["type"] in MOVEMENTS and block > get("begin"):
        move(fact["from"], fact["to"], int(fact["raw"]))
        values = [key, block, sealed, fact["from"], fact["to"], fact["raw"]]
        db.execute("INSERT INTO facts (key, block, sealed, sender, receiver, raw) VALUES (?, ?, ?, ?, ?, ?)", values)


def prove(block, seal):
    sealed = {key for key, kind in zip(seal["keys"], seal["types"]) if kind in MOVEMENTS}
    booked = {key for key, in db.execute("SELECT key FROM facts WHERE block = ?", [block])}
    db.executemany("UPDATE facts SET sealed = 1 WHERE key = ?", [[key] for key in sealed])
    db.execute("DELETE FROM doubts WHERE place = ?", [f"block {block}"])
    digest = hashlib.sha256("\n".join(seal["keys"]).encode()).hexdigest()[:32]
    if (digest, len(seal["keys"])) != (seal["digest"], seal["count"]):
        doubt(f"block {block}", "the seal is damaged")
    elif sealed != booked:
        doubt(f"block {block}", f"lacks {len(sealed - booked)} movements, has {len(booked - sealed)} too many")
    doubts = [f"; {place}: {why}" for place, why in db.execute("SELECT place, why FROM doubts LIMIT 3")]
    unsealed = one("SELECT min(block) FROM facts WHERE NOT sealed AND block <= ?", get("finalized"))
    doubts += [f"; block {unsealed}: finalized, but no seal lists a movement"] if unsealed else []
    supply = -int(one("SELECT raw FROM balances WHERE account = ?", ZERO) or 0)
    verdict = f"not proven{''.join(doubts)}" if doubts else f"proven: {len(sealed)} movements"
    print(f"block {block} {verdict}; minted - burned = {supply}", flush=True)


def handle(message):
    global attempts, retry_s
    kind, place = message["type"], message.get("id")
    if "prev" in message:
        if is_up_to(place, get("position")):
            return  # A repetition.
        prev, last = message["prev"], get(f"last {kind}")
        if prev not in (None, last) and (last or not is_up_to(prev, get("start"))):
            doubt(f"before {place}", f"a {kind} is missing")
        put(f"last {kind}", place)
    if kind in MOVEMENTS or kind == "amend":
        book(message["key"], message.get("update", message))
    elif kind == "retract":
        unbook(message["key"])
    elif kind == "seal" and message["block"]["number"] > get("begin"):
        prove(message["block"]["number"], message)
    elif kind == "finality" and message["stage"] == "finalized":
        put("finalized", message["block"]["number"])
    elif kind == "hole" and message["blocks"]["last"] > get("begin"):
        doubt(f"blocks {message['blocks']['first']} to {message['blocks']['last']}", message["reason"])
    elif kind == "hello" and get("begin") is None:
        # Nothing of a block after this one is published yet. If the relay knows no block, max fails, and we try again later.
        for name, value in ("token", TOKEN), ("begin", max(filter(None, message["head"].values())) + 1), ("start", place):
            put(name, value)
        print(f"begins after block {get('begin')}", flush=True)
    elif kind == "gap":
        doubt(f"after {message['after']}", message["reason"])
        db.execute("DELETE FROM state WHERE name LIKE 'last %'")
        put("start", place)
    elif kind == "heartbeat":
        attempts = 0
    elif kind == "bye":
        retry_s = message["retry_ms"] / 1000
    elif kind == "error" and message["code"] != 429 and message["code"] < 500:
        sys.exit(message["message"])
    if place:
        put("position", place)


def fill(gap):
    path, query = gap["backfill"].split("?")
    query = {**dict(parse_qsl(query)), "limit": 1000}
    while query["after"]:
        with web.open(f"{URL}{path}?{urlencode(query)}", timeout=30) as answer:
            page = json.load(answer)
        query["after"] = page["next"]
        with db:
            for message in page["events"]:
                handle(message)
            put("position", page["next"] or gap["id"])


if get("token") not in (None, TOKEN):
    sys.exit(f"This file is the ledger of {get('token')}.")
query = {"symbols": TOKEN, "types": TYPES, "snapshot": "false", "format": "ndjson", "heartbeat": HEARTBEAT_S}
while True:
    gap = None
    try:
        url = f"{URL}/v1/stream?" + urlencode({**query, "since": get("position") or "now"})
        with web.open(url, timeout=3 * HEARTBEAT_S) as stream:  # A relay that is silent for three heartbeats is gone.
            for message in map(json.loads, stream):
                if message["type"] == "gap" and message["backfill"]:
                    gap = message
                    break  # While pages are read, the open stream would be a slow reader.
                with db:  # One transaction: a crash loses a message and its position, or neither.
                    handle(message)
        if gap:
            fill(gap)
    except urllib.error.HTTPError as refusal:
        # A refusal of the stream would come again. One of a page, such as 410, brings another gap.
        if gap is None and refusal.code != 429 and refusal.code < 500:
            sys.exit(refusal.read().decode())
        after = refusal.headers.get("Retry-After", "")
        retry_s = int(after) if after.isdigit() else 0  # A date is ignored.
    except (OSError, ValueError, http.client.HTTPException) as failure:
        print(failure, file=sys.stderr)
    time.sleep(retry_s + RETRY_S * 2 ** min(attempts, RETRIES_BOUND) * random.uniform(0.5, 1.5))
    attempts, retry_s = attempts + 1, 0.0
