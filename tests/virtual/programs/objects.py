"""What ranks tell each other: objects, shapes, barriers, messages, numbers of the host.

torchrun --nproc_per_node=N objects.py    prints one line a check; the exit code is 1 if one fails
"""
import os
import sys

import torch
import torch.distributed as dist

FAILED = []


def check(name, found, expected):
    if found != expected:
        FAILED.append(name)
        print(f'rank {dist.get_rank()} {name}: {found}, expected {expected}', flush=True)


def objects(rank, ranks):
    many = ['some', {'text': 'x' * 300}, 3] if rank == 0 else [None] * 3
    one = [{'dir': '/tmp/run', 'n': 7}] if rank == 0 else [None]
    dist.broadcast_object_list(one)
    check('broadcast of an object', one, [{'dir': '/tmp/run', 'n': 7}])
    dist.broadcast_object_list(many)
    check('broadcast of objects', many, ['some', {'text': 'x' * 300}, 3])
    gathered = [None] * ranks
    dist.all_gather_object(gathered, {'rank': rank})
    check('all_gather of objects', gathered, [{'rank': r} for r in range(ranks)])
    dist.all_gather_object(gathered, 'y' * (10 * rank + 1))
    check('all_gather of sizes', [len(g) for g in gathered], [10 * r + 1 for r in range(ranks)])
    dist.gather_object({'mine': rank}, gathered if rank == 0 else None)
    if rank == 0:
        check('gather of objects', gathered, [{'mine': r} for r in range(ranks)])
    mine = [None]
    dist.scatter_object_list(mine, [f'to {r}' for r in range(ranks)] if rank == 0 else None)
    check('scatter of objects', mine, [f'to {rank}'])


def collectives(rank, ranks):
    for dtype in (torch.int64, torch.float32, torch.float16, torch.bfloat16):
        x = torch.tensor([rank + 1.5, 2], dtype=dtype).cuda()
        expected = sum(torch.tensor([r + 1.5, 2], dtype=dtype) for r in range(ranks)).tolist()
        dist.all_reduce(x)
        check(f'all_reduce {dtype}', x.tolist(), expected)
    x = torch.tensor([rank, -rank]).cuda()
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    check('all_reduce max', x.tolist(), [ranks - 1, 0])
    x = torch.tensor([float(rank)]).cuda()
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    check('all_reduce avg', x.tolist(), [(ranks - 1) / 2])
    out = torch.empty(ranks, dtype=torch.int64, device='cuda')
    dist.all_gather_into_tensor(out, torch.tensor([rank]).cuda())
    check('all_gather_into_tensor', out.tolist(), list(range(ranks)))
    out = torch.empty(1, dtype=torch.int64, device='cuda')
    dist.reduce_scatter_tensor(out, torch.arange(ranks).cuda())
    check('reduce_scatter_tensor', out.item(), rank * ranks)
    out = torch.empty(ranks, dtype=torch.int64, device='cuda')
    dist.all_to_all_single(out, torch.tensor([10 * rank + r for r in range(ranks)]).cuda())
    check('all_to_all_single', out.tolist(), [10 * r + rank for r in range(ranks)])
    out = torch.empty(1, dtype=torch.int64, device='cuda')
    dist.scatter(out, [torch.tensor([r + 5]).cuda() for r in range(ranks)] if rank == 0 else None)
    check('scatter', out.item(), rank + 5)
    x = torch.tensor([rank + 1]).cuda()
    dist.reduce(x, dst=ranks - 1)
    if rank == ranks - 1:
        check('reduce', x.item(), ranks * (ranks + 1) // 2)


def messages(rank, ranks):
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    got = torch.zeros(2, dtype=torch.int64, device='cuda')
    for turn in range(3):
        mine = torch.tensor([rank, turn]).cuda()
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, after),
                                            dist.P2POp(dist.irecv, got, before)]):
            work.wait()
        check('a message around', got.tolist(), [before, turn])
    if rank == 0:
        dist.send(torch.tensor([41]).cuda(), 1)
    elif rank == 1:
        got = torch.zeros(1, dtype=torch.int64, device='cuda')
        dist.recv(got, 0)
        check('a message', got.item(), 41)


def groups(rank, ranks):
    halves = [dist.new_group(list(range(half, ranks, 2))) for half in range(2)]
    x = torch.tensor([rank]).cuda()
    dist.all_reduce(x, group=halves[rank % 2])
    check('all_reduce in a group', x.item(), sum(range(rank % 2, ranks, 2)))
    mesh = torch.distributed.device_mesh.init_device_mesh('cuda', (ranks // 2, 2))
    x = torch.tensor([rank]).cuda()
    dist.all_reduce(x, group=mesh.get_group(1))
    check('all_reduce in a mesh', x.item(), rank // 2 * 4 + 1)


def main():
    rank, ranks = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
    dist.init_process_group('nccl')
    for part in (collectives, messages, groups, objects):
        dist.barrier()
        part(rank, ranks)
        if rank == 0:
            print(part.__name__, 'failed' if FAILED else 'ok', flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.exit(1 if FAILED else 0)


main()
