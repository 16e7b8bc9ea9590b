"""Tool `costs`: tokens and list prices by day, session, model or agent."""

from decimal import Decimal
from itertools import chain

from hivepipe.costs.tokens import Tokens
from hivepipe.mcp_server.answer import Answer, Row, filled, short
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.reading.costs import GROUPS, GroupCost, costs_by, in_order

_LONGEST = 200


def answer(call: ToolCall) -> Answer:
    """Return the costs by group, the newest day or the highest cost first, and their total."""
    columns, since = GROUPS[call.text("by")], call.day("since")
    of_homes, problems = call.of_each(lambda known: costs_by([known], columns, since, call.folder))
    found = in_order(chain.from_iterable(of_homes))
    dollars = [each.cost.dollars for each in found if each.cost.dollars is not None]
    tokens = [each.bill.tokens() for each in found]
    unknown = sorted({model for each in found for model in each.cost.without_price})
    total = {
        "groups": len(found),
        "messages": sum(each.bill.messages for each in found),
        "tokens": {name: sum(getattr(each, name) for each in tokens) for name in Tokens._fields},
        "cost_usd": float(round(sum(dollars, Decimal(0)), 6)) if dollars or not found else None,
        "models_without_price": [short(model, _LONGEST) for model in unknown[:20]],
    }
    return Answer(
        map(_row, found), {"total": total, **filled(unreadable=problems)}, call.number("limit")
    )


def _row(each: GroupCost) -> Row:
    return each.entry() | {name: short(value, _LONGEST) for name, value in each.key.items()}
