"""Compiled loops over the requests to cells of fixed width (see `fast_cells.py`)."""

from __future__ import annotations

import math

import numpy as np

from weir.events.batch import START
from weir.kernels.aggregates.exact_loops import add_limbs, split_double
from weir.loops.argument_types import I64, F64s, F64Table, I64Cube, I64s, I64Table, U8s, U8Table
from weir.loops.compiled import in_place

READ, READ_SUM, READ_WINDOW, SET, ADD, MAX, MIN, MAX_FLOAT, MIN_FLOAT, ADD_FLOAT, ADD_SUM, PUSH = (
    range(12)
)
"""What a request does.

`READ_SUM` and `ADD_SUM` are for exact sums of doubles, `READ_WINDOW` and `PUSH` for sums over a
window."""

FINE, OVERFLOW, NULL_ARGUMENT, NULL_CELL = range(4)
"""How a run of requests ended."""

NULL, NAN, PLUS, MINUS, SUMMED = 1, 2, 4, 8, 16
"""Flags of a cell.

NULL: the cell is NULL. NAN, PLUS, MINUS: these values were added to its sum. SUMMED: its value is
the sum in its limbs."""

# Columns of the tables that describe requests and states.
OP, STATE, ARGUMENTS, CONDITIONS, NULLS, ANSWERS, STEP, DEFERS = range(8)
DEFAULT, DEFAULT_FLAGS, EXPIRES, LOWEST, HIGHEST, LAST, LIMBS, LOW, WIDTH, WINDOW, DOUBLES = range(
    11
)
HEAD, TAIL, HIGH, LOWER = range(4)
"""Columns of a window: its first and last merge, and the sum of integers in two parts.

For doubles, whose sum is in limbs, the parts are the count of NaNs, and the counts of ∞ and −∞ in
32 bits each."""

_LOW_HALF = (1 << 32) - 1


@in_place
def reset_cells(
    groups: I64s,
    states: I64Table,
    cells: I64Table,
    flags: U8Table,
    limbs: I64Table,
    windows: I64Cube,
):
    """Give these groups cells without merges."""
    for group in groups:
        for s in range(len(states)):
            cells[group, 2 * s] = states[s, DEFAULT]
            cells[group, 2 * s + 1] = START
            flags[group, s] = states[s, DEFAULT_FLAGS]
            w = states[s, WINDOW]
            if w >= 0:
                windows[group, w, HEAD] = windows[group, w, TAIL] = -1
                windows[group, w, HIGH] = windows[group, w, LOWER] = 0
                for i in range(states[s, WIDTH]):
                    limbs[group, states[s, LIMBS] + i] = 0
                # Every sum includes the default.
                _count_in(states, limbs, windows, group, s, states[s, DEFAULT], 1)


@in_place
def run_requests(
    only: I64,
    order_program: I64s,
    order_row: I64s,
    count: I64,
    programs: I64Table,
    requests: I64Table,
    states: I64Table,
    args: I64s,
    float_args: F64s,
    masks: U8s,
    groups: I64s,
    vs: I64s,
    cells: I64Table,
    floats: F64Table,
    flags: U8Table,
    limbs: I64Table,
    digits: I64s,
    windows: I64Cube,
    pool: I64Table,
    free: I64s,
    answers: I64s,
    float_answers: F64s,
    answer_flags: U8s,
    right_from: I64,
    failed: I64s,
):
    """Run all requests in order; return how the run ended.

    After a failure, `failed` has the request and the row. For each program, `programs` has its
    first request, the end of its requests, and where the rows of its port begin in `groups` and
    `vs`. Doubles are int64 by their bits; `floats`, `float_args` and `float_answers` are the memory
    of `cells`, `args` and `answers` as doubles.
    """
    for visit in range(count):
        program, row = only, visit
        if only < 0:
            program, row = order_program[visit], order_row[visit]
        at = programs[program, 2] + row
        group, time = groups[at], vs[at]
        for r in range(programs[program, 0], programs[program, 1]):
            op, s = requests[r, OP], requests[r, STATE]
            if op <= READ_WINDOW:
                out = requests[r, ANSWERS] + row
                gone = group < 0
                if not gone and states[s, EXPIRES] >= 0:
                    gone = time >= cells[group, 2 * s + 1] + states[s, EXPIRES]
                if gone or op == READ_WINDOW:
                    answers[out] = states[s, DEFAULT]
                    answer_flags[out] = states[s, DEFAULT_FLAGS]
                    if gone or time < right_from:
                        continue
                    w = states[s, WINDOW]
                    _leave(states, limbs, windows, pool, free, group, s, time - states[s, LAST])
                    if states[s, DOUBLES]:
                        special = _specials(windows[group, w, HIGH], windows[group, w, LOWER])
                        float_answers[out] = _sum_of(states, limbs, digits, group, s, special)
                        continue
                    low = windows[group, w, LOWER]
                    high = windows[group, w, HIGH] + (low >> 32)
                    beyond = high < -(1 << 31) or high >= 1 << 31
                    value = (high << 32) | (low & _LOW_HALF)
                    answers[out] = value
                    if beyond or value < states[s, LOWEST] or value > states[s, HIGHEST]:
                        answer_flags[out] = NULL
                        if not requests[r, DEFERS]:
                            failed[0], failed[1] = r, row
                            return OVERFLOW
                elif op == READ or not flags[group, s] & SUMMED:
                    answers[out] = cells[group, 2 * s]
                    answer_flags[out] = flags[group, s] & NULL
                else:
                    float_answers[out] = _sum_of(states, limbs, digits, group, s, flags[group, s])
                    answer_flags[out] = 0
                continue
            if requests[r, CONDITIONS] >= 0 and not masks[requests[r, CONDITIONS] + row]:
                continue
            argument = requests[r, ARGUMENTS] + row * requests[r, STEP]
            if requests[r, NULLS] >= 0 and masks[requests[r, NULLS] + row]:
                if op != SET:
                    failed[0], failed[1] = r, row
                    return NULL_ARGUMENT
                cells[group, 2 * s + 1] = time
                flags[group, s] = NULL
                continue
            if states[s, EXPIRES] >= 0 and time >= cells[group, 2 * s + 1] + states[s, EXPIRES]:
                cells[group, 2 * s] = states[s, DEFAULT]
                flags[group, s] = states[s, DEFAULT_FLAGS]
            cells[group, 2 * s + 1] = time
            if op == SET:
                cells[group, 2 * s] = args[argument]
                flags[group, s] = 0
                if args[argument] < states[s, LOWEST] or args[argument] > states[s, HIGHEST]:
                    failed[0], failed[1] = r, row
                    return OVERFLOW
                continue
            if op == PUSH:
                _leave(states, limbs, windows, pool, free, group, s, time - states[s, LAST])
                _push(states, limbs, windows, pool, free, group, s, time, args[argument])
                continue
            if flags[group, s] & NULL:
                failed[0], failed[1] = r, row
                return NULL_CELL
            if op == ADD:
                old, new = cells[group, 2 * s], cells[group, 2 * s] + args[argument]
                cells[group, 2 * s] = new
                wrapped = ((old ^ new) & (args[argument] ^ new)) < 0
                if wrapped or new < states[s, LOWEST] or new > states[s, HIGHEST]:
                    failed[0], failed[1] = r, row
                    return OVERFLOW
            elif op in (MAX, MIN):
                old, new = cells[group, 2 * s], args[argument]
                if (op == MAX and new > old) or (op == MIN and new < old):
                    cells[group, 2 * s] = new
                    if new < states[s, LOWEST] or new > states[s, HIGHEST]:
                        failed[0], failed[1] = r, row
                        return OVERFLOW
            elif op == ADD_FLOAT:
                floats[group, 2 * s] += float_args[argument]
            elif op == ADD_SUM:
                _add_to_sum(states, limbs, flags, cells, group, s, args[argument])
            else:
                old = floats[group, 2 * s]
                if flags[group, s] & SUMMED:
                    old = _sum_of(states, limbs, digits, group, s, flags[group, s])
                new = float_args[argument]
                if (op == MAX_FLOAT and new > old) or (op == MIN_FLOAT and new < old):
                    floats[group, 2 * s] = new
                    flags[group, s] = 0
    return FINE


# --- windows ---------------------------------------------------------------------------------


@in_place
def _count_in(states, limbs, windows, group, s, value, sign):
    """Add a value to the totals of a window, or subtract it (`sign` −1)."""
    w = states[s, WINDOW]
    if not states[s, DOUBLES]:
        windows[group, w, HIGH] += sign * (value >> 32)
        windows[group, w, LOWER] += sign * (value & _LOW_HALF)
    elif (value >> 52) & 0x7FF == 0x7FF:
        if value & ((1 << 52) - 1):
            windows[group, w, HIGH] += sign
        else:
            windows[group, w, LOWER] += sign if value > 0 else sign << 32
    elif value << 1 != 0:
        magnitude, position = split_double(value)
        negative = (value < 0) != (sign < 0)
        add_limbs(limbs, group, states[s, LIMBS], states[s, LOW], magnitude, negative, position)


@in_place
def _specials(nans, infinities):
    """Return the flags of a window's sum."""
    special = NAN if nans else 0
    special |= PLUS if infinities & _LOW_HALF else 0
    return special | (MINUS if infinities >> 32 else 0)


@in_place
def _push(states, limbs, windows, pool, free, group, s, time, value):
    """Append a merge to a cell's window; the pool has room."""
    w = states[s, WINDOW]
    slot = free[0]
    free[0] = pool[slot, 2]
    pool[slot, 0], pool[slot, 1], pool[slot, 2] = time, value, -1
    if windows[group, w, HEAD] < 0:
        windows[group, w, HEAD] = slot
    else:
        pool[windows[group, w, TAIL], 2] = slot
    windows[group, w, TAIL] = slot
    free[1] += 1
    _count_in(states, limbs, windows, group, s, value, 1)


@in_place
def _leave(states, limbs, windows, pool, free, group, s, until):
    """Drop the merges of a cell at `until` or before."""
    w = states[s, WINDOW]
    slot = windows[group, w, HEAD]
    while slot >= 0 and pool[slot, 0] <= until:
        after = pool[slot, 2]
        _count_in(states, limbs, windows, group, s, pool[slot, 1], -1)
        pool[slot, 2] = free[0]
        free[0] = slot
        free[1] -= 1
        slot = after
    windows[group, w, HEAD] = slot
    if slot < 0:
        windows[group, w, TAIL] = -1


@in_place
def drop_merges(
    groups: I64s,
    s: I64,
    until: I64,
    states: I64Table,
    limbs: I64Table,
    windows: I64Cube,
    pool: I64Table,
    free: I64s,
):
    """Drop the merges at `until` or before from these groups' windows in a state."""
    for group in groups:
        _leave(states, limbs, windows, pool, free, group, s, until)


@in_place
def list_merges(
    groups: I64s,
    window: I64,
    windows: I64Cube,
    pool: I64Table,
    of: I64s,
    number: I64s,
    times: I64s,
    values: I64s,
):
    """Write the merges of one window of these groups, group by group; return their count."""
    found = 0
    for i in range(len(groups)):
        slot = windows[groups[i], window, HEAD]
        position = 0
        while slot >= 0:
            of[found], number[found] = i, position
            times[found], values[found] = pool[slot, 0], pool[slot, 1]
            found += 1
            position += 1
            slot = pool[slot, 2]
    return found


@in_place
def push_merges(
    groups: I64s,
    s: I64,
    times: I64s,
    values: I64s,
    states: I64Table,
    limbs: I64Table,
    windows: I64Cube,
    pool: I64Table,
    free: I64s,
):
    """Append merges, in order of time, to the windows of their groups in a state."""
    for i in range(len(groups)):
        _push(states, limbs, windows, pool, free, groups[i], s, times[i], values[i])


# --- exact sums ------------------------------------------------------------------------------


@in_place
def _add_to_sum(states, limbs, flags, cells, group, s, bits):
    if not flags[group, s] & SUMMED:
        for i in range(states[s, WIDTH]):
            limbs[group, states[s, LIMBS] + i] = 0
        flags[group, s] = SUMMED
        _add_double(states, limbs, flags, group, s, cells[group, 2 * s])
    _add_double(states, limbs, flags, group, s, bits)


@in_place
def _add_double(states, limbs, flags, group, s, bits):
    if (bits >> 52) & 0x7FF == 0x7FF:
        if bits & ((1 << 52) - 1):
            flags[group, s] |= NAN
        else:
            flags[group, s] |= PLUS if bits > 0 else MINUS
    elif bits << 1 != 0:
        magnitude, position = split_double(bits)
        add_limbs(limbs, group, states[s, LIMBS], states[s, LOW], magnitude, bits < 0, position)


@in_place
def _sum_of(states, limbs, digits, group, s, special):
    """Round the exact sum of a cell to the nearest double, ties to even."""
    if special & NAN or (special & PLUS and special & MINUS):
        return math.nan
    if special & PLUS:
        return math.inf
    if special & MINUS:
        return -math.inf
    at, width = states[s, LIMBS], states[s, WIDTH]
    sign = _digits_of(limbs, group, at, width, digits)
    top = width + 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    # The 64 leading bits, and whether any lower bit is set.
    u = np.uint64(digits[top]) << np.uint64(32)
    if top >= 1:
        u |= np.uint64(digits[top - 1])
    shift = 0
    while not (u >> np.uint64(63)):
        u <<= np.uint64(1)
        shift += 1
    third = np.uint64(digits[top - 2] if top >= 2 else 0)
    sticky = False
    if shift:
        u |= third >> np.uint64(32 - shift)
    if third & ((np.uint64(1) << np.uint64(32 - shift)) - np.uint64(1)):
        sticky = True
    for i in range(top - 2):
        if digits[i]:
            sticky = True
    exponent = 32 * (states[s, LOW] + top - 1) - shift - 1074
    mantissa = u >> np.uint64(11)
    rest = u & np.uint64(0x7FF)
    if rest > 0x400 or (rest == 0x400 and (sticky or mantissa & np.uint64(1))):
        mantissa += np.uint64(1)
    return sign * math.ldexp(float(np.int64(mantissa)), exponent + 11)


@in_place
def read_sums(
    groups: I64s,
    s: I64,
    states: I64Table,
    limbs: I64Table,
    flags: U8Table,
    digits: I64s,
    floats: F64Table,
    values: F64s,
):
    """Write the exact sum of each of these groups' cells."""
    for i in range(len(groups)):
        values[i] = floats[groups[i], 2 * s]
        if flags[groups[i], s] & SUMMED:
            values[i] = _sum_of(states, limbs, digits, groups[i], s, flags[groups[i], s])


@in_place
def _digits_of(limbs, group, at, width, digits):
    """Write the base-2³² digits of the absolute value; return the sign."""
    for sign in (1, -1):
        carry = np.int64(0)
        for i in range(width):
            total = sign * limbs[group, at + i] + carry
            digits[i] = total & _LOW_HALF
            carry = total >> 32
        if carry >= 0:
            digits[width] = carry & _LOW_HALF
            digits[width + 1] = carry >> 32
            return sign
    return 0


@in_place
def carry_limbs(limbs: I64Table, at: I64, width: I64):
    """Reduce all limbs but the last below 2³², to make room for as many more additions."""
    for group in range(len(limbs)):
        carry = np.int64(0)
        for i in range(width - 1):
            total = limbs[group, at + i] + carry
            limbs[group, at + i] = total & _LOW_HALF
            carry = total >> 32
        limbs[group, at + width - 1] += carry
