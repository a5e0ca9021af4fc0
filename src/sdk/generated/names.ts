// The names of stocktape.v1 that a client must know, made from the tables of the relay.

/** The messages of the tape. A newer relay may send others, which a client ignores. */
export const updateTypes: readonly string[] = 'transfer mint burn seize approval multiplier pause action token nav log retract amend seal hole finality status quote session'.split(' ')

/** The types that a listener receives only if it names them. */
export const namedTypes: readonly string[] = 'approval log'.split(' ')

/** The types that tell what became of a fact: a listener that did not name them receives those of its facts. */
export const followingTypes: readonly string[] = 'seal retract amend'.split(' ')

/** Only facts that pass these filters. A stream with one of them has no chains of `prev`. */
export type ValueFilters = {
  /** Only movements whose reference_value is at least this; a null value does not pass. */
  readonly minValue?: string | number
  /** Only movements whose shares are at least this; a null value does not pass. */
  readonly minShares?: string | number
  /** Only movements from or to this address. */
  readonly party?: string
}

/** Each of them, and its parameter. */
export const filterParameters: readonly (readonly [option: keyof ValueFilters, parameter: string])[] = [['minValue', 'min_value'], ['minShares', 'min_shares'], ['party', 'party']]
