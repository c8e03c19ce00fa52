"""Another module of the program that test_use_of_value.py is: it keeps values that are used there."""


class Meter:
    def keep_best(self, value):
        self.best_so_far = value.item()

    def keep_latest(self, value):
        self.latest = value.item()

    def show(self):
        print(self.latest)
