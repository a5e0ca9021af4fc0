export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

export type LogLine = {
  readonly level: Level
  readonly sentence: string
  /** A condition repeats the line as long as it lasts, so it is logged once a minute. */
  readonly repeats?: true
}

const debug = (sentence: string) => ({ level: 'debug', sentence }) as const
const info = (sentence: string) => ({ level: 'info', sentence }) as const
const warn = (sentence: string) => ({ level: 'warn', sentence }) as const
const repeated = (sentence: string) => ({ level: 'warn', sentence, repeats: true }) as const
const error = (sentence: string) => ({ level: 'error', sentence }) as const
const fatal = (sentence: string) => ({ level: 'fatal', sentence }) as const

/** All lines of the log. The key is the `kind`, a word for programs. */
export const logLines = {
  // The process
  started: info('stocktape has started'),
  setting_unknown: warn('a variable looks like a misspelt setting'),
  cannot_start: fatal('the relay cannot start'),
  listening: info('stocktape listens'),
  serving: info('tokens are known: clients are served'),
  stopping: info('stocktape stops'),
  stopped: info('stocktape has stopped'),
  stop_failed: fatal('stopping failed'),
  failed: fatal('the relay cannot continue'),
  worker_started: info('a worker serves clients'),
  worker_ended: error('a worker has ended, and another one takes its place'),
  worker_failed: fatal('the worker cannot continue'),
  backup_copied: info('a backup of the tape was copied'),
  no_control: warn('stocktape backup cannot reach this relay: the socket in DATA_DIR does not open'),
  // The chain
  source_changed: info('updates are read from this source from now on'),
  source_down: error('the chain cannot be read: clients receive nothing new'),
  source_back: info('the chain is read again'),
  behind: warn('updates are late: the node, or the reading of sealed blocks, is behind'),
  caught_up: info('updates are in time again'),
  reorg: warn('the chain was reorganised'),
  hole: repeated('sealed blocks could not be read, and clients receive a hole'),
  link_down: repeated('the socket to the node is closed, and is opened again later'),
  subscription_refused: repeated('the node refuses a subscription'),
  message_unreadable: repeated('a message of the node is unreadable'),
  logs_unreadable: repeated('logs or messages of the node are unreadable'),
  upstream_request_failed: debug('a request to the node failed'),
  upstream_failed: repeated('an upstream URL fails, and is asked again later'),
  wrong_chain: repeated('an upstream URL is of another chain, and is not used'),
  upstream_aside: repeated('an upstream URL is asked after all others for a while'),
  batches_refused: repeated('the node refuses batches'),
  poll_failed: repeated('polling failed'),
  settling_delayed: repeated('the logs of a sealed block cannot be read, and are requested again'),
  backfill_delayed: repeated('missed blocks cannot be read, and are requested again'),
  no_finality: repeated('the node gives no safe or no finalized block'),
  contract_empty: repeated('a contract returns nothing'),
  contract_of_another_block: repeated('a contract was read at another block, and is read again'),
  contract_failed: repeated('a contract cannot be read'),
  contracts_refused: repeated(
    'the node refuses to read contracts: multipliers, supply and frozen feeds are known from the list and from logs only',
  ),
  pools_unreadable: repeated('pools cannot be read'),
  swaps_unreadable: repeated('swaps of pools have another layout than those of their kind of pool, and are not published'),
  pools_refused: warn('the node refuses the swaps of a pool manager: its pools are dropped until it answers'),
  pools_answered: info('the node answers the swaps of a pool manager: its pools are followed again'),
  pool_unlisted: repeated('POOLS names a token that is not listed'),
  pool_repeated: repeated('POOLS names a pool twice, and the first name applies'),
  // The token list
  list_read: info('the token list was read'),
  list_unreadable: repeated('the token list cannot be read, and the last one stays in use'),
  list_shrank: repeated('the token list lacks tokens that it had: it is confirmed first'),
  list_records_skipped: repeated('records of the token list are unreadable, and were skipped'),
  // The tape
  tape_unwritable: error(
    'the tape cannot be written: clients are served, and updates are kept in memory until it can; free space on the disk of DATA_DIR',
  ),
  tape_unflushed: error(
    'the tape cannot be flushed to the disk: updates are kept in memory until a restart; repair the disk first',
  ),
  tape_writable: info('the tape is on the disk again, with all updates that were kept in memory'),
  tape_empty: warn('the tape file is empty: a new epoch begins'),
  tape_reopened: warn('the tape does not continue: it is opened again, and clients reconnect'),
  // The cluster
  nats_connected: info('NATS is connected'),
  nats_unreachable: repeated('NATS cannot be reached'),
  nats_lost: warn('the connection to NATS is lost, and is tried again'),
  nats_back: info('the connection to NATS is back'),
  nats_silent: repeated('NATS does not answer'),
  nats_refuses: error('NATS does not store the tape'),
  nats_stores: info('NATS stores the tape again'),
  leads: info('this ingester leads: it writes the tape'),
  leads_no_more: warn('this ingester no longer leads'),
  updates_missing: warn('updates of the tape do not arrive: NATS cannot be reached, or no ingester writes'),
  updates_arrive: info('updates of the tape arrive again'),
  tape_read_again: warn('the tape is read again from the stream'),
  stream_unreadable: repeated('a message of the stream is no batch, and was skipped'),
  stream_other_version: repeated('a batch of the stream is of another version of stocktape, and was skipped'),
  // Clients
  api_keys_read: info('the API keys were read'),
  api_keys_unreadable: repeated('API_KEYS_FILE cannot be read, and its last keys stay valid'),
  untrusted_proxy: repeated('X-Forwarded-For from an address that is not in TRUSTED_PROXIES is not believed'),
  client_connected: debug('a client has connected'),
  client_ended: debug('the connection of a client has ended'),
  request_failed: repeated('a request of a client failed'),
  history_unreadable: repeated('history cannot be read to its end'),
} as const satisfies Readonly<Record<string, LogLine>>

export type LogKind = keyof typeof logLines

/** Writes a line of the log. `detail` names what it is about; its `reason` is a text. */
export type WriteLine = (kind: LogKind, detail?: unknown) => void
