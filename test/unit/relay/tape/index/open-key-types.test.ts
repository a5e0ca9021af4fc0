import { describe, expect, it } from 'vitest'
import { type Draft, type Update, updateTypes } from '../../../../../src/protocol/updates.ts'
import { OpenKeyTypes } from '../../../../../src/relay/tape/index/open-key-types.ts'
import { LOST, maskOf, namesOf } from '../../../../../src/relay/tape/index/type-mask.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'
import { amend, approval, retract, seal, transfer } from '../update-drafts.ts'

const at = Date.parse('2026-11-20T12:00:00Z')

const KEYS_PER_GENERATION = 20

/** Key types beside the tape that they index. Records every lookup on the tape. */
function openKeyTypes() {
  const entries: Entry[] = []
  const lookups: string[] = []
  const keyTypes = new OpenKeyTypes((key) => {
    lookups.push(key)
    return entries.filter(({ update }) => 'key' in update && update.key === key)
  }, KEYS_PER_GENERATION)
  const follow = (draft: Draft) => {
    const update = { ...draft, id: 'k.1', prev: null } as Update
    const entry = { seq: entries.length + 1, update, text: '' }
    const followed = keyTypes.add(entry)
    entries.push(entry)
    return { types: namesOf(followed.mask), followsFrom: followed.followsFrom }
  }
  return { follow, lookups }
}

describe('the types of a key', () => {
  it('are known to every update that follows the key', () => {
    const { follow, lookups } = openKeyTypes()
    follow(transfer({ at, nth: 4 }))
    follow(approval({ at, nth: 5 }))
    const both = { ...seal({ at, nth: 4, types: ['transfer', 'approval', 'part'] }) }
    const keys = [transfer({ at, nth: 4 }).key, approval({ at, nth: 5 }).key, transfer({ at, nth: 9 }).key]
    expect(follow(amend({ at, nth: 5 }))).toEqual({ types: ['transfer', 'approval'], followsFrom: 2 })
    expect(follow({ ...both, keys })).toEqual({ types: ['transfer', 'approval'], followsFrom: 1 })
    expect(lookups).toEqual([])
    // Few updates follow a sealed key, so it is no longer cached.
    expect(follow(retract({ at, nth: 5 }))).toEqual({ types: ['transfer', 'approval'], followsFrom: 2 })
    expect(lookups).toEqual([keys[1]])
  })

  it('are read from the tape once the cache has dropped them', () => {
    const { follow, lookups } = openKeyTypes()
    follow(transfer({ at, nth: 4 }))
    follow(amend({ at, nth: 4 }))
    follow(transfer({ at, nth: 5 }))
    follow(retract({ at, nth: 5 }))
    for (let nth = 10; nth < 50; nth += 1) follow(approval({ at, nth }))
    expect(lookups).toEqual([])
    expect(follow(seal({ at, nth: 4, types: ['transfer'] }))).toEqual({ types: ['transfer'], followsFrom: 1 })
    expect(follow(seal({ at, nth: 5, types: ['transfer'] })).types).toEqual(['lost'])
    expect(lookups).toHaveLength(2)
  })

  it('survive the way to a bitmask and back', () => {
    for (const type of updateTypes) expect(namesOf(maskOf([type]))).toEqual([type])
    expect(namesOf(maskOf(updateTypes))).toEqual(updateTypes)
    expect(maskOf(['unknown'])).toBe(LOST)
  })
})
