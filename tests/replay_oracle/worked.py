"""All worked examples, one for each sentence of what an app means."""

from replay_oracle import worked_code, worked_order, worked_states

EXAMPLES = (*worked_order.EXAMPLES, *worked_states.EXAMPLES, *worked_code.EXAMPLES)
