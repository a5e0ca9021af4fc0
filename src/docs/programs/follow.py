"""Follows symbols of a stocktape relay. Prints each message once, and a gap where messages are missing, as NDJSON."""
import http.client, json, os, random, sys, time, urllib.error, urllib.parse, urllib.request

URL = os.environ.get("STOCKTAPE_URL", "http://127.0.0.1:8080")
SYMBOLS = os.environ.get("STOCKTAPE_SYMBOLS") or ",".join(sys.argv[1:]) or "AAPLc"
FILE = os.environ.get("STOCKTAPE_POSITION", "stocktape.position")
STAGE = os.environ.get("STOCKTAPE_STAGE", "preconfirmed")  # Or sealed: only what is in a sealed block.
HEARTBEAT_S, RETRY_S, RETRIES_BOUND = 5, 0.5, 6

position = open(FILE).read() if os.path.exists(FILE) else None
chain_start = None  # Where the unbroken stream begins.
last_ids = {}  # The newest message of each address and type.
attempts = 0
retry_s = 0.0


def order(place):
    """With stage=sealed the facts of a seal come just before it: `<epoch>.<seq>.<n>` before `<epoch>.<seq>`."""
    epoch, seq, n = f"{place}.inf".split(".")[:3]
    return epoch, int(seq), float(n)


def is_up_to(place, other):
    return order(place)[0] == order(other)[0] and order(place) <= order(other)


def save(place):
    """Renamed, so that a crash leaves a whole position. Called when a message is handled: a crash repeats one, and loses none."""
    global position
    position = place
    with open(FILE + ".new", "w") as file:
        file.write(place)
    os.replace(FILE + ".new", FILE)


def check_chain(message):
    """The prev of a message is the id of the one before it with the same address and type. Otherwise that one is missing."""
    if STAGE == "sealed":
        return  # There prev proves nothing.
    chain, prev = (message.get("address"), message["type"]), message["prev"]
    last = last_ids.get(chain)
    if prev is not None and prev != last and (last is not None or not is_up_to(prev, chain_start)):
        gap = {"type": "gap", "reason": "missed", "id": position, "after": last or chain_start, "through": prev, "backfill": None}
        print(json.dumps(gap), flush=True)
    last_ids[chain] = message["id"]


def handle(line):
    global position, chain_start, attempts, retry_s
    message = json.loads(line)
    kind, place = message["type"], message.get("id")
    if kind == "error" and message["code"] != 429 and message["code"] < 500:
        sys.exit(message["message"])
    if kind == "bye":
        retry_s = message["retry_ms"] / 1000
    elif kind == "heartbeat":
        attempts = 0
    elif kind == "hello" and place is not None and chain_start is None:
        chain_start = place
    elif kind == "gap":
        print(line, flush=True)
        chain_start, position = place, None
        last_ids.clear()
    elif "prev" in message:
        if position is not None and is_up_to(place, position):
            return  # A repetition of our own reconnect.
        check_chain(message)
        print(line, flush=True)
    if place is not None:
        save(place)


while True:
    query = {"symbols": SYMBOLS, "stage": STAGE, "format": "ndjson", "heartbeat": HEARTBEAT_S, "since": position or "now"}
    try:
        # A relay that is silent for three heartbeats is gone.
        with urllib.request.urlopen(f"{URL}/v1/stream?{urllib.parse.urlencode(query)}", timeout=3 * HEARTBEAT_S) as stream:
            for line in stream:
                handle(line.decode().rstrip("\n"))
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode()
        if refusal.code != 429 and refusal.code < 500:
            sys.exit(text)  # Any other refusal would come again.
        after = refusal.headers.get("Retry-After", "")
        retry_s = int(after) if after.isdigit() else 0  # A date is ignored.
    except (OSError, ValueError, http.client.HTTPException) as failure:
        print(failure, file=sys.stderr)
    time.sleep(retry_s + RETRY_S * 2 ** min(attempts, RETRIES_BOUND) * random.uniform(0.5, 1.5))
    attempts, retry_s = attempts + 1, 0.0
