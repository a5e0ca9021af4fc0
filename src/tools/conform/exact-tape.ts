import { type GivenFields, type MessageOf, ScriptedTape } from '../../sdk/testing/scripted-tape.ts'

/** Near Number.MAX_SAFE_INTEGER, so that a client that rounds numbers is noticed. */
const FIRST_SEQ = 9_007_199_254_700_000
/** Raw amount with more digits than a floating-point number can keep. */
const RAW = '12345678901234567890123456789'
const AMOUNT = '123456789012345678901.23456789'
const MEMO = `0x${'7'.repeat(64)}`

/** A tape of one token, with numbers that a client must not round. */
export class ExactTape extends ScriptedTape {
  constructor(epoch: string) {
    super(epoch, undefined, FIRST_SEQ)
  }

  /** The beginning, as long as nothing is deleted. */
  get start(): string {
    return this.oldest
  }

  transfer(fields: GivenFields<'transfer'> = {}): MessageOf<'transfer'> {
    return this.write('transfer', { raw: RAW, amount: AMOUNT, shares: AMOUNT, ...fields })
  }

  nav(): MessageOf<'nav'> {
    return this.write('nav')
  }

  /** Writes an action whose text has at least `length` characters, some of them of several bytes. */
  action(length: number): MessageOf<'action'> {
    const { block, tx, key } = this.transfer()
    const description = 'Dividende für Größe ≥ 1 € 📈 '.repeat(Math.ceil(length / 30))
    return this.write('action', { key: `${key.slice(0, -1)}1`, description, keys: [key], block, tx: { ...tx, log_index: 1 } })
  }

  withMemo(transfer: MessageOf<'transfer'>): MessageOf<'amend'> {
    return this.amend(transfer, { memo: MEMO })
  }
}
