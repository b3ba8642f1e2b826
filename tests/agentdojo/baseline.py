"""The simplest defence that follows values: it asks whenever an argument of a tool with an effect stands verbatim in an
earlier result."""

from served import ServedSuite

# The tools that change something or reach the network, for the baseline only: a policy says it for the guard.
EFFECTS = {
    "banking": "send_money schedule_transaction update_scheduled_transaction update_password update_user_info",
    "slack": "add_user_to_channel send_direct_message send_channel_message invite_user_to_slack remove_user_from_slack"
    " post_webpage get_webpage",
    "travel": "create_calendar_event cancel_calendar_event reserve_hotel reserve_car_rental reserve_restaurant send_email",
    "workspace": "send_email delete_email create_calendar_event cancel_calendar_event reschedule_calendar_event"
    " add_calendar_event_participants append_to_file create_file delete_file share_file",
}


def texts(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item)
    else:
        yield str(value)


class Baseline:
    def __init__(self, suite, environment):
        self.effects = EFFECTS[suite.name].split()
        self.served = ServedSuite(suite, environment)
        self.seen = []

    def call(self, name, arguments, allows):
        asked = name in self.effects and any(
            text and text in result for text in texts(arguments) for result in self.seen
        )
        if asked and not allows:
            return "denied"
        result = self.served.answer("tools/call", {"name": name, "arguments": arguments})
        self.seen.append(result["content"][0]["text"])
        return "allowed" if asked else "passed"

    def end(self):
        pass
