import { ORIGIN } from './snippets.ts'

/** What users of the feed build, and what to watch for. The page shows them; tests run their code. */

export type Recipe = {
  readonly id: string
  readonly title: string
  readonly paragraphs: readonly string[]
  /** Code to copy, if the recipe has any. */
  readonly source?: string
}

const ledger: Recipe = {
  id: 'ledger',
  title: 'Keep a ledger',
  paragraphs: [
    'Listen without value filters and with stage=preconfirmed. Keep two tables: facts by key, and the last id of every pair of address and type.',
    'The proof: the prev of each message is the last id of its pair. If it is another one, something is missing and was not announced. The proof of a pair begins with its first message: nothing before it is proven, unless its prev is null. A snapshot proves nothing about single messages. If you name types, name seal, retract and amend too.',
    'A movement opens its key. A seal that lists the key, or a retract, ends it. A retracted key may come again: then it lives anew. An amend replaces the content under the same key. A message with an id that you have seen is a repetition of your own reconnect: drop it.',
    'After gap long: read every page of backfill until next is null, then go on. It gives exactly the messages that were left out, so the proof goes on through them. After gap expired: the messages between from and to are deleted. Forget the ids of all pairs, and ask /v1/events/{key} for every key that is still open; if the answer is 404, ask the chain. After gap epoch or ahead: the tape is another one. Do the same; your keys stay valid, because a key names its fact on every relay and for ever.',
    'Pruning: when finality says finalized up to a block, no key that was sealed at or below it is retracted any more. Move those facts out of the table of keys.',
  ],
}

const page: Recipe = {
  id: 'page',
  title: 'Draw a page',
  paragraphs: [
    'One request gives the state of all symbols at one position. The stream that starts there repeats nothing and loses nothing. After a gap the stream sends new snapshots: draw those.',
  ],
  source: `const symbols = 'AAPLc,TSLAc'
const { as_of, snapshots } = await (await fetch(\`${ORIGIN}/v1/snapshot?symbols=\${symbols}\`)).json()
for (const { symbol, nav, supply } of snapshots) console.log(symbol, nav.price, nav.state, supply.tokens)
const stream = new EventSource(\`${ORIGIN}/v1/stream?symbols=\${symbols}&since=\${as_of}\`)
stream.onmessage = ({ data }) => console.log(JSON.parse(data))`,
}

const browserLimit: Recipe = {
  id: 'six-streams',
  title: 'Six streams per browser',
  paragraphs: [
    'Over HTTP/1.1 a browser keeps at most six connections to one host, in all tabs together. The seventh EventSource, and every fetch after it, waits for ever and reports nothing.',
    'Put all symbols into one stream: symbols=AAPLc,TSLAc. Or use the WebSocket, which has a limit of its own, far higher. Or put a proxy with HTTP/2 in front: it carries a hundred streams on one connection. For many tabs, let one hold the stream and pass the messages on with a BroadcastChannel.',
  ],
}

const twoRelays: Recipe = {
  id: 'two-relays',
  title: 'Two relays behind one name',
  paragraphs: [
    'Each relay writes a tape of its own, with an epoch of its own. A position of one means nothing on the other: a client that reconnects to the other one receives a gap with reason epoch, and a replay from its oldest message.',
    'Route each client to the same relay every time, for example by a hash of its address, and use the second relay where the first is away. With `?on_gap=skip` it goes on at the end instead.',
    'Keys are the same on both. A client that listens to both at once may drop what it already has by key and type.',
  ],
}

const retract: Recipe = {
  id: 'retract',
  title: 'Provoke a retract',
  paragraphs: [
    'The built-in chain can misbehave on request. Here it forgets every fifth pre-confirmed transaction, so retracts come within seconds. Run the first two lines in the folder of stocktape, each in a terminal of its own. The flags --reorg-every and --reorg-depth provoke reorgs; --help lists all faults.',
  ],
  source: `npm run devnet -- --port 9545 --drop-every 5
npm start -- --data-dir :memory: --upstream-rpc-url http://127.0.0.1:9545 --upstream-ws-url ws://127.0.0.1:9545 --stocks-api-url http://127.0.0.1:9545
curl -N '${ORIGIN}/v1/tail/*?types=retract'`,
}

export const recipes: readonly Recipe[] = [ledger, page, browserLimit, twoRelays, retract]
