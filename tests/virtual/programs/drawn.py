"""Random numbers of one seed, as the GPU draws them: the last line has some of each kind."""
import torch

import peaks

torch.manual_seed(7)
d = 'cuda'
DRAWN = {
    'rand': torch.rand(5000, device=d),
    'rand double': torch.rand(3000, device=d, dtype=torch.float64),
    'randint': torch.randint(0, 1000, (5000,), device=d),
    'randint wide': torch.randint(0, 1 << 40, (300,), device=d),
    'randperm': torch.randperm(5000, device=d),
    'randperm small': torch.randperm(40, device=d),
    'bernoulli': torch.empty(4000, device=d).bernoulli_(0.3),
    'mask': torch.rand(64, 64, device=d) < 0.15,
    'half': torch.rand(3000, device=d, dtype=torch.float16),
    'uniform': torch.empty(3000, device=d).uniform_(-2, 3),
    'random': torch.empty(3000, device=d, dtype=torch.int64).random_(17),
    'randn': torch.randn(3000, device=d),
    'exponential': torch.empty(3000, device=d).exponential_(),
    'multinomial': torch.multinomial(torch.ones(20, device=d), 5),
}
peaks.report(drawn={name: t.double().cpu().flatten()[[0, 1, 2, 3, -2, -1]].tolist() for name, t in DRAWN.items()})
