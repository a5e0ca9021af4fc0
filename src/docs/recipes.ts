import { programRecipes, type Recipe } from './program-recipes.ts'
import { ORIGIN } from './snippets.ts'

/** What users of the feed build, and what to watch for. The page shows them; tests run their code. */

const ledger: Recipe = {
  id: 'ledger',
  title: 'Keep a ledger',
  paragraphs: [
    'Listen without value filters and with stage=preconfirmed. Keep two tables: facts by key, and the last id of every pair of address and type.',
    'The proof: the prev of each message is the last id of its pair. If it is another one, something is missing and was not announced. The proof of a pair begins with its first message: nothing before it is proven, unless its prev is null. A snapshot proves nothing about single messages. If you name types, name seal, retract and amend too.',
    'A movement opens its key. A seal that lists the key, or a retract, ends it. Where types of the seal has part at the place of the key, the seal does not count: after a reorg the log of a retracted fact may be part of another fact. A retracted key may come again: then it lives anew. An amend replaces the content under the same key. Ignore seals, retracts and amends of keys that you do not have: with the default types they also come for approvals, for other logs, and for facts from before you began. A message with an id that you have is a repetition of your own reconnect: drop it.',
    'Save the tables and the position in one transaction, after a message is handled. To compare two positions of one epoch, compare the numbers after the first dot.',
    'After gap long: read every page of backfill until next is null, and only then save the id of the gap. The pages hold exactly the messages that were left out, so the proof goes on through them. If X-Kept-Since of an answer is after the position in after of the gap, some of them were deleted meanwhile: go on as after expired.',
    'After gap expired: messages after the position in after, up to the one in through, are deleted, and facts that were only published there stay unknown. If through is before after, your position was never given or was lost: nothing is deleted, and the relay sends what follows through again, also under ids that you have. Otherwise /v1/events?after=<after>&through=<through> gives those that are still stored, as history and not as proof. Forget the ids of all pairs. Ask /v1/events/{key} for every key that is open, and for every key that is sealed in a block that is not finalized: a reorg may have removed it. If the answer is 404, ask the chain: when eth_blockNumber has passed the block of the key, eth_getLogs of that block has a log with this transaction hash, log index and content, or the fact did not happen. Ask again once its block is finalized. Ask once per block: only a fifth of RPC_RATE may be eth_getLogs.',
    'After gap epoch the tape is another one: do as after expired. Your keys stay valid, because a key names its fact on every relay and for ever. After gap ahead your position was never given, and the stream goes on at the end: read /v1/events after the last id that you received, then go on. After a hole with the reason reorg, ask again for the facts in its blocks, as after expired.',
    'Pruning: when finality says finalized up to a block, no key that was sealed at or below it is retracted any more. Move those facts out of the table of keys.',
  ],
}

const page: Recipe = {
  id: 'page',
  title: 'Draw a page',
  paragraphs: [
    'One request gives the state of all symbols at one position. The stream that starts there repeats nothing and loses nothing.',
    'After a gap the stream sends new snapshots: clear the table and draw those. Messages with an id up to as_of may follow. Their effect is in the snapshot already, so show them as history only. No message has the supply: add mints and burns to it, and take them back when they are retracted, or ask for the snapshot again.',
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
    'Route each client to the same relay every time, for example by a hash of its address, and use the second relay where the first is away. The parameter ?on_gap=skip lets the stream go on at the end instead.',
    'Keys are the same on both. A client that listens to both at once may drop what it already has by key and type.',
  ],
}

const retract: Recipe = {
  id: 'retract',
  title: 'Provoke a retract',
  paragraphs: [
    'The built-in chain can misbehave on request. Here it forgets every twentieth pre-confirmed transaction, so retracts come within seconds. Run the first line in the folder of stocktape, and the second in another terminal. docs/faults.md has all faults: reorgs, late messages, outages, gaps.',
  ],
  source: `npm start -- --data-dir :memory: --faults drop=5%
curl -N '${ORIGIN}/v1/tail/*?types=retract'`,
}

export const recipes: readonly Recipe[] = [...programRecipes, ledger, page, browserLimit, twoRelays, retract]
