"""PPO in one file, as cleanrl writes it: the environment on the host, the rollout's tensors on the GPU.

    python ppo.py [--target-kl X] [--continuous]
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Normal

import peaks

ENVS, STEPS, EPOCHS, MINIBATCHES, UPDATES = 4, 32, 2, 4, 2
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


class Poles:
    """Poles to be balanced: angles and speeds; one that falls is set up again."""

    def __init__(self):
        self.random = np.random.default_rng(0)
        self.state = np.zeros((ENVS, 4), np.float32)

    def step(self, action):
        push = np.asarray(action, np.float32).reshape(ENVS, -1)[:, 0]
        self.state[:, 2:] += 0.1 * self.state[:, :2] + 0.02 * (push - 0.5)[:, None]
        self.state[:, :2] += 0.1 * self.state[:, 2:] + self.random.normal(0, 0.01, (ENVS, 2))
        fell = np.abs(self.state[:, 0]) > 0.2
        self.state[fell] = 0
        return self.state.copy(), np.ones(ENVS, np.float32), fell


class Agent(nn.Module):
    def __init__(self, is_continuous):
        super().__init__()

        def body(outputs):
            return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))
        self.critic, self.actor = body(1), body(2)
        self.spread = nn.Parameter(torch.zeros(1, 2)) if is_continuous else None

    def chances(self, seen):
        outputs = self.actor(seen)
        if self.spread is None:
            return Categorical(logits=outputs)
        return Normal(outputs, self.spread.expand_as(outputs).exp())

    def forward(self, seen, action=None):
        chances = self.chances(seen)
        action = chances.sample() if action is None else action
        gain, entropy = chances.log_prob(action), chances.entropy()
        if self.spread is not None:
            gain, entropy = gain.sum(1), entropy.sum(1)
        return action, gain, entropy, self.critic(seen)


def rollout(agent, poles, seen, fell):
    """What happened in so many steps: tensors of the GPU, the first dimension is time."""
    rows = []
    for _ in range(STEPS):
        with torch.no_grad():
            action, gain, _, value = agent(seen)
        after, reward, over = poles.step(action.cpu().numpy())
        rows.append((seen, action, gain, value.flatten(), torch.tensor(reward).cuda(), fell))
        seen, fell = torch.tensor(after).cuda(), torch.tensor(over, dtype=torch.float32).cuda()
    return [torch.stack(column) for column in zip(*rows)], seen, fell


@torch.no_grad()
def advantages(values, rewards, fell, next_value, next_fell):
    found, last = torch.zeros_like(rewards), 0
    for t in reversed(range(STEPS)):
        alive = 1 - (next_fell if t == STEPS - 1 else fell[t + 1])
        following = next_value if t == STEPS - 1 else values[t + 1]
        gap = rewards[t] + GAMMA * following * alive - values[t]
        found[t] = last = gap + GAMMA * LAMBDA * alive * last
    return found


def learn(agent, optimizer, batch, target_kl):
    seen, actions, gains, values, gained = (column.flatten(0, 1) for column in batch)
    clipped, order = [], np.arange(ENVS * STEPS)
    for _ in range(EPOCHS):
        np.random.shuffle(order)
        for rows in np.split(order, MINIBATCHES):
            _, gain, entropy, value = agent(seen[rows], actions[rows])
            change = gain - gains[rows]
            ratio = change.exp()
            with torch.no_grad():
                kl = ((ratio - 1) - change).mean()
                clipped += [((ratio - 1).abs() > CLIP).float().mean().item()]
            better = gained[rows]
            better = (better - better.mean()) / (better.std() + 1e-8)
            loss = torch.max(-better * ratio, -better * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            loss = loss - 0.01 * entropy.mean() + 0.5 * (value.flatten() - gained[rows] - values[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if target_kl is not None and kl > target_kl:
            break
    guessed, true = values.cpu().numpy(), (gained + values).cpu().numpy()
    print('loss', loss.item(), 'clipped', np.mean(clipped), 'explained', 1 - np.var(true - guessed) / (np.var(true) or 1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--target-kl', type=float)
    parser.add_argument('--continuous', action='store_true')
    options = parser.parse_args()
    agent, poles = Agent(options.continuous).cuda(), Poles()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    seen, fell = torch.zeros(ENVS, 4).cuda(), torch.zeros(ENVS).cuda()
    for _ in range(UPDATES):
        (was, actions, gains, values, rewards, over), seen, fell = rollout(agent, poles, seen, fell)
        with torch.no_grad():
            following = agent.critic(seen).flatten()
        gained = advantages(values, rewards, over, following, fell)
        learn(agent, optimizer, (was, actions, gains, values, gained), options.target_kl)
    peaks.report()


main()
