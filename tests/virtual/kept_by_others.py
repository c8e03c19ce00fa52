"""Another module of the program that test_use_of_value.py is: it keeps values that are used there."""


class Meter:
    def keep_best(self, value):
        self.best_so_far = value.item()

    def keep_latest(self, value):
        self.latest = value.item()

    def show(self):
        print(self.latest)

    def update(self, value, count=1):
        self.total_seen = self.total_seen + value * count


def tell(name, value, where=None):
    print(name, value, where)


def choose(name, value, *, most=3):
    return name if value > most else ''


def half(value):
    return value / 2


def tensor(rows):
    return sum(map(sum, rows))
