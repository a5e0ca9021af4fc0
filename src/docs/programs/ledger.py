"""Keeps a ledger of one token in a SQLite file, and proves it block by block. Arguments: token, URL of the relay, file."""
import hashlib, http.client, json, random, re, sqlite3, sys, time, urllib.error, urllib.parse, urllib.request

TOKEN, URL, FILE = sys.argv[1:] + ["AAPLc", "http://127.0.0.1:8080", "ledger.sqlite"][len(sys.argv) - 1 :]
MOVEMENTS = ["transfer", "mint", "burn", "seize"]
ZERO = "0x" + 40 * "0"  # Mints are from this address, and burns are to it.
HEARTBEAT_S, RETRY_S, RETRY_BOUND_S = 5, 0.5, 30

db = sqlite3.connect(FILE)
db.executescript("""PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, block INTEGER, stage TEXT, sender TEXT, receiver TEXT, raw TEXT);
CREATE INDEX IF NOT EXISTS facts_of_block ON facts (block);
CREATE TABLE IF NOT EXISTS balances (name TEXT PRIMARY KEY, value TEXT); -- changes since the block `begin`, by account
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT); -- `begin`, `position`, and the last id of each type
CREATE TABLE IF NOT EXISTS doubts (name TEXT PRIMARY KEY, value TEXT); -- where the ledger may be wrong, and why""")
attempts, retry_s = 0, 0.0


def get(table, name):
    row = db.execute(f"SELECT value FROM {table} WHERE name = ?", [name]).fetchone()
    return row and row[0]


def put(table, name, value):
    db.execute(f"REPLACE INTO {table} VALUES (?, ?)", [name, value])


def book(key, fact):
    """Replaces what a key moved: by the movement of a fact, or by nothing if it is none. Safe to repeat."""
    block = int(key.split("-")[0])
    for sender, receiver, raw in db.execute("SELECT sender, receiver, raw FROM facts WHERE key = ?", [key]).fetchall():
        move(receiver, sender, int(raw))
    db.execute("DELETE FROM facts WHERE key = ?", [key])
    if fact["type"] in MOVEMENTS and block > int(get("notes", "begin")):
        move(fact["from"], fact["to"], int(fact["raw"]))
        values = [key, block, fact["stage"], fact["from"], fact["to"], fact["raw"]]
        db.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", values)


def move(sender, receiver, raw):
    for account, change in (sender, -raw), (receiver, raw):
        put("balances", account, str(int(get("balances", account) or 0) + change))


def prove(block, keys, types, count, digest):
    """Compares the movements of a block with its seal, and the sum of all balances with what was minted and burned."""
    sealed = {key for key, kind in zip(keys, types) if kind in MOVEMENTS}
    booked = {key for key, in db.execute("SELECT key FROM facts WHERE block = ?", [block])}
    db.executemany("UPDATE facts SET stage = 'sealed' WHERE key = ?", [[key] for key in sealed])
    balances = {account: int(raw) for account, raw in db.execute("SELECT * FROM balances")}
    supply = -balances.pop(ZERO, 0)
    db.execute("DELETE FROM doubts WHERE name = ?", [f"block {block}"])
    if count != len(keys) or digest != hashlib.sha256("\n".join(keys).encode()).hexdigest()[:32]:
        put("doubts", f"block {block}", "the seal is damaged")
    elif sealed != booked:
        put("doubts", f"block {block}", f"lacks {len(sealed - booked)} movements, has {len(booked - sealed)} too many")
    elif sum(balances.values()) != supply:
        put("doubts", f"block {block}", "the sum of all balances is wrong")
    doubts = "".join(f"; {name}: {why}" for name, why in db.execute("SELECT * FROM doubts"))
    verdict = f"not proven{doubts}" if doubts else f"proven: {len(sealed)} movements"
    print(f"block {block} {verdict}; {len(balances)} accounts, minted - burned = {supply}", flush=True)


def handle(message):
    global attempts, retry_s
    kind, place = message["type"], message.get("id")
    if "prev" in message:
        if get("notes", kind) not in (None, message["prev"]):
            put("doubts", f"before {place}", f"a {kind} is missing")
        put("notes", kind, place)
    if kind in MOVEMENTS or kind == "retract":
        book(message["key"], message)
    elif kind == "amend":
        book(message["key"], message["update"])
    elif kind == "seal" and message["block"]["number"] > int(get("notes", "begin")):
        prove(message["block"]["number"], *(message[name] for name in ("keys", "types", "count", "digest")))
    elif kind == "hole":
        put("doubts", f"blocks {message['blocks']['first']} to {message['blocks']['last']}", message["reason"])
    elif kind == "hello" and get("notes", "begin") is None:
        # Nothing of a block after this one is published yet. If the relay knows no block, max fails, and we try again later.
        put("notes", "begin", max(filter(None, message["head"].values())) + 1)
        print(f"begins after block {get('notes', 'begin')}", flush=True)
    elif kind == "gap" and message["backfill"]:
        fill(f"{message['backfill']}&limit=1000")
    elif kind == "gap":
        put("doubts", f"after {message['after']}", message["reason"])
        db.execute("DELETE FROM notes WHERE name <> 'begin'")
    elif kind == "heartbeat":
        attempts = 0
    elif kind == "bye":
        retry_s = message["retry_ms"] / 1000
    if place:
        put("notes", "position", place)


def fill(path):
    """Reads the messages of a gap, page by page."""
    while path:
        with urllib.request.urlopen(URL + path, timeout=30) as answer:
            page = json.load(answer)
        for message in page["events"]:
            handle(message)
        path = page["next"] and re.sub("after=[^&]*", "after=" + page["next"], path)


types = ",".join(MOVEMENTS + ["seal", "retract", "amend", "hole"])
query = {"symbols": TOKEN, "types": types, "snapshot": "false", "format": "ndjson", "heartbeat": HEARTBEAT_S}
while True:
    try:
        url = f"{URL}/v1/stream?" + urllib.parse.urlencode({**query, "since": get("notes", "position") or "now"})
        # A relay that is silent for three heartbeats is gone.
        with urllib.request.urlopen(url, timeout=3 * HEARTBEAT_S) as stream:
            for line in stream:
                with db:  # One transaction: a crash loses a message and its position, or neither.
                    handle(json.loads(line))
    except urllib.error.HTTPError as refusal:
        if refusal.code != 429 and refusal.code < 500:
            sys.exit(refusal.read().decode())  # Any other refusal would be repeated.
        retry_s = float(refusal.headers.get("Retry-After") or 0)
    except (OSError, ValueError, http.client.HTTPException) as failure:
        print(failure, file=sys.stderr)
    time.sleep(retry_s + min(RETRY_S * 2**attempts, RETRY_BOUND_S) * random.uniform(0.5, 1.5))
    attempts, retry_s = attempts + 1, 0.0
