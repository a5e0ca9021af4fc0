import { ORIGIN, program } from './snippets.ts'

export type Recipe = {
  readonly id: string
  readonly title: string
  readonly paragraphs: readonly string[]
  /** Code to copy, if the recipe has any. Tests run it. */
  readonly source?: string
}

/** Where the package comes from, until it is published. */
const INSTALL = 'Install the tarball that npm run package makes in a clone'

const programRecipe = (id: string, title: string, file: string, text: string): Recipe => ({
  id,
  title,
  paragraphs: [text],
  source: program(file).trimEnd(),
})

export const recipes: readonly Recipe[] = [
  programRecipe(
    'page-library',
    'A page with the library',
    'page.html',
    `All symbols with their NAV, and live transfers. It survives a restart of the relay. ${INSTALL}.`,
  ),
  programRecipe(
    'react',
    'React',
    'tape.jsx',
    `This page uses useTape. ${INSTALL}, and react and react-dom. All components of a page, and all tabs of a browser, share one connection. useStock(symbol) is the state of one stock, useFeed() the state of the connection. Each result has a status, an error and data.`,
  ),
  programRecipe(
    'watch',
    'React: a watch list',
    'watch.jsx',
    `Five symbols with their NAV, the price in the main pool and the premium, an alert above 50 basis points, a chart, and the last 20 movements, which are there at the first paint. ${INSTALL}, and react, react-dom and lightweight-charts, whose licence asks for the link.`,
  ),
  programRecipe('vue', 'Vue', 'vue.html', `A book in a shallowRef. ${INSTALL}, and vue.`),
  programRecipe('svelte', 'Svelte', 'Tape.svelte', `A book as a store. ${INSTALL}, and svelte.`),
  programRecipe(
    'chart',
    'A chart of NAV and quote',
    'chart.html',
    `The lightweight-charts library of TradingView; its licence asks for the link. ${INSTALL}, and lightweight-charts. The quote is a price in a pool on the chain, in USDC, taken as one dollar each. The NAV is a reference value.`,
  ),
  programRecipe(
    'candles',
    'Candles',
    'candles.html',
    'Bars of /v1/bars in lightweight-charts; its licence asks for the link. The page at /docs/charts runs this code.',
  ),
  programRecipe(
    'event-source',
    'A page without the library',
    'event-source.html',
    'It uses only EventSource, which reconnects and resumes by itself.',
  ),
  programRecipe('jq', 'A table in a shell', 'transfers.sh', 'Columns that other programs can read.'),
  programRecipe(
    'hummingbot',
    'The candles of a bot',
    'candles.sh',
    'The ten columns of a candle feed of Hummingbot, with the volumes in tokens and in the currency, and the part that takers bought.',
  ),
  programRecipe(
    'duckdb',
    'A table of bars in DuckDB',
    'bars.sql',
    'All columns are read as text and cast, because DuckDB would read doubles. In pandas: read_csv with dtype=str, and decimal.Decimal.',
  ),
  {
    id: 'spreadsheet',
    title: 'A spreadsheet',
    paragraphs: [
      'Google Sheets reads the CSV by itself, from a relay with a public name and without keys. In LibreOffice, open the address as a file.',
    ],
    source: `=IMPORTDATA("${ORIGIN}/v1/bars/AAPLc?interval=1d&format=csv")`,
  },
  programRecipe(
    'viem',
    'viem',
    'viem.js',
    'The relay is a node: it sends the logs of all listed tokens as they are pre-confirmed. A log that did not happen is sent again with removed: true.',
  ),
  {
    id: 'ledger',
    title: 'Keep a ledger',
    source: program('ledger.py').trimEnd(),
    paragraphs: [
      'The program keeps the balances of one token in a SQLite file, in raw units, with the standard library of Python 3.8 or later. It begins after the block that it prints first: add the balances of that block, which a node knows. It prints a line for each block with movements. A block is proven if the movements of its seal are exactly those in the file. A line says not proven, and why, as long as any message since the beginning may be missing, or no seal lists a movement of a finalized block. docs/bots.md explains it. The rules of such a ledger:',
      'Listen without value filters and with stage=preconfirmed. Keep two tables: facts by key, and the last id of every pair of address and type.',
      'The proof: the prev of each message is the last id of its pair. If prev is a different id, a message is missing and no gap announced it. The proof of a pair begins with its first message and says nothing about earlier ones, unless the prev of that message is null. A snapshot proves nothing about single messages. If you name types, also name seal, retract and amend.',
      'A movement opens its key. A seal that lists the key, or a retract, ends it. If the entry of the key in types of the seal is part, the seal does not count: after a reorg the log of a retracted fact may be part of another fact. A retracted key may be published again, which opens it again. An amend replaces the content of its key; if you do not have the key, book its update like a new fact. Ignore seals and retracts of keys that you do not have: with the default types you also receive those of approvals, of other logs, and of facts from before your first message. If you already have the id of a message, your own reconnect repeated it: drop it.',
      'Save the tables and the position in one transaction, after you handle a message. To compare two positions of one epoch, compare the numbers after the first dot. With stage=sealed a third number follows: a position that has it is before the one without it.',
      'After gap long: read every page of backfill until next is null, and only then save the id of the gap. The pages contain exactly the omitted messages, so the proof continues through them. If X-Kept-Since of an answer is later than after of the gap, some of them have been deleted: continue as after gap expired.',
      'After gap expired: messages later than after, up to through, have been deleted, and you cannot learn facts that only those messages published. If through is before after, the relay never issued your position, or has lost it: nothing was deleted, and the relay sends the messages later than through again, also under ids that you have. Otherwise /v1/events?after=<after>&through=<through> returns the messages that are still stored, as history and not as proof. Forget the ids of all pairs. Request /v1/events/{key} for every open key, and for every key that is sealed in a block that is not finalized: a reorg may have removed it. If the answer is 404, ask the chain: once eth_blockNumber is higher than the block of the key, eth_getLogs of that block returns a log with this transaction hash, log index and content, or the fact did not happen. Ask again once the block is finalized. Ask once per block: only a fifth of RPC_RATE may be eth_getLogs.',
      'After gap epoch the relay has a new tape: continue as after gap expired. Your keys stay valid, because a key is the permanent name of its fact on every relay. After gap ahead the relay never issued your position, and the stream continues at the end of the tape: read /v1/events after the last id that you received, then continue. After a hole with the reason reorg, ask for the facts in its blocks again, as after gap expired.',
      'Pruning: when a finality message says finalized for a block, no key that was sealed in it or below it can be retracted. Move those facts out of the table of keys.',
    ],
  },
  {
    id: 'page',
    title: 'Draw a page',
    paragraphs: [
      'One request gives the state of all symbols at one position. A stream from that position repeats nothing and loses nothing.',
      'After a gap the stream sends new snapshots: clear the table and draw them. Messages with an id up to as_of may follow. The snapshot already includes them, so show them only as history. No message contains the supply: add mints, subtract burns, and undo them when they are retracted; or request the snapshot again.',
    ],
    source: `const symbols = 'AAPLc,TSLAc'
const { as_of, snapshots } = await (await fetch(\`${ORIGIN}/v1/snapshot?symbols=\${symbols}\`)).json()
for (const { symbol, nav, supply } of snapshots) console.log(symbol, nav.price, nav.state, supply.tokens)
const stream = new EventSource(\`${ORIGIN}/v1/stream?symbols=\${symbols}&since=\${as_of}\`)
stream.onmessage = ({ data }) => console.log(JSON.parse(data))`,
  },
  {
    id: 'six-streams',
    title: 'Six streams per browser',
    paragraphs: [
      'Over HTTP/1.1 a browser keeps at most six connections to one host, in all tabs together. The seventh EventSource, and every fetch after it, waits forever and reports nothing.',
      'Put all symbols into one stream: symbols=AAPLc,TSLAc. Or use the WebSocket, which has its own, far higher limit. Or use a proxy with HTTP/2, which allows a hundred streams on one connection. For many tabs, let one tab open the stream and share the messages through a BroadcastChannel.',
    ],
  },
  {
    id: 'two-relays',
    title: 'Two relays behind one name',
    paragraphs: [
      'Each relay has its own tape with its own epoch. A position on one tape has no meaning on the other: a client that reconnects to the other relay receives a gap with reason epoch, and a replay from the oldest message there.',
      'Route each client to the same relay every time, for example by a hash of its address, and use the second relay if the first is down. With ?on_gap=skip the stream continues at the end of the tape instead.',
      'Keys are equal on both. A client that listens to both keeps the state of each key, and sets it again when the other relay repeats a message. It drops repetitions by id within one relay only: a retracted key may be published again.',
    ],
  },
  {
    id: 'retract',
    title: 'Provoke a retract',
    paragraphs: [
      'The built-in chain can misbehave on request. Here it drops every twentieth pre-confirmed transaction, so the first retract follows within seconds. Run the first line in the folder of stocktape, and the second in another terminal. docs/faults.md describes all faults: reorgs, late messages, outages, gaps.',
    ],
    source: `npm start -- --data-dir :memory: --faults drop=5%
curl -N '${ORIGIN}/v1/tail/*?types=retract'`,
  },
]
