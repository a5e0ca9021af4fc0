// The names of stocktape.v1 that a client must know, made from the tables of the relay.

/** The messages of the tape. A newer relay may send others, which a client ignores. */
export const updateTypes: readonly string[] = /* @__PURE__ */ 'transfer mint burn seize trade approval multiplier pause action token log nav retract amend seal hole finality status quote venue bar session'.split(' ')

/** The types that a listener receives only if it names them. */
export const namedTypes: readonly string[] = /* @__PURE__ */ 'approval log bar'.split(' ')

/** The types that tell what became of a fact: a listener that did not name them receives those of its facts. */
export const followingTypes: readonly string[] = /* @__PURE__ */ 'retract amend seal'.split(' ')

/** The types that make up the state of the tokens and of the relay. */
export const stateTypes: readonly string[] = /* @__PURE__ */ 'multiplier pause token nav hole finality status quote venue bar session'.split(' ')

/** The types that are repeated all the time; the next message replaces the one before. */
export const readingTypes: readonly string[] = /* @__PURE__ */ 'nav finality quote bar'.split(' ')

/** Only facts that pass these filters. A stream with one of them has no chains of `prev`. */
export type ValueFilters = {
  /** Only movements whose reference_value, and trades whose currency_amount, is at least this; a null value does not pass. */
  readonly minValue?: string | number
  /** Only movements and trades whose shares are at least this; a null value does not pass. */
  readonly minShares?: string | number
  /** Only movements from or to one of these addresses, 1 to 20, and trades of which one is the sender or recipient. */
  readonly account?: string | readonly string[]
  /** Only trades and quotes of these pools, 1 to 20: addresses, or ids of Uniswap v4. */
  readonly pools?: string | readonly string[]
}

/** Each of them, and its parameter. */
export const filterParameters: readonly (readonly [option: keyof ValueFilters, parameter: string])[] = [['minValue', 'min_value'], ['minShares', 'min_shares'], ['account', 'account'], ['pools', 'pools']]
