"""One program, many runs: each in a child that nothing else was done in."""
import json
import os


def in_child(work):
    """What `work` returns; {'oom': text} or {'error': text} where it ends with an exception."""
    import torch
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            result = work()
        except torch.OutOfMemoryError as error:
            result = {'oom': str(error).split('. GPU')[0]}
        except Exception as error:
            result = {'error': f'{type(error).__name__}: {error}'[:400]}
        with os.fdopen(writer, 'w') as pipe:
            pipe.write(json.dumps(result))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {'error': f'ended with status {status}'}
