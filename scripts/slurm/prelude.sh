# For batch scripts: one answer for all GPUs of a job, whatever its nodes have.
#
#     . /opt/plimsoll/scripts/slurm/prelude.sh
#     plimsoll_env llama-3-8b --effective-batch 256 --world "$SLURM_NTASKS"
#     srun python train.py --batch-size "${PLIMSOLL_MICRO_BATCH:-1}" ...
#
# On several nodes each is asked (a step of one task a node), and the smallest micro-batch is taken, with
# its accumulation. Where nodes differ in anything else (checkpointing, precision, sequence), or one has no
# answer, nothing is set and the reason is said: fix that option and ask again. It never fails.
# $PLIMSOLL: the program, if it is not on the path. $PLIMSOLL_SECONDS: for the nodes to answer (60).

# The words NAME=value of a line, exported; a value is not evaluated.
plimsoll_export() {
    local word
    for word in $1; do
        [[ $word =~ ^[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9._:/@%+,-]*$ ]] && export "${word?}"
    done
    return 0
}

# "PLIMSOLL_SEQ=1024 PLIMSOLL_PRECISION=bf16": what may not differ.
plimsoll_common() {
    local word out=
    for word in $1; do
        case $word in
        PLIMSOLL_SEQ=* | PLIMSOLL_PRECISION=* | PLIMSOLL_CHECKPOINTING=* | PLIMSOLL_GLOBAL_BATCH=*) out+="$word " ;;
        esac
    done
    printf %s "$out"
}

# Takes the least of so many lines "NAME=value ...", one a node.
plimsoll_least() {
    local nodes=$1 line least='' common='' batch number=0 least_batch=0 simulated='' stale=''
    while IFS= read -r line; do
        case $line in *PLIMSOLL_MICRO_BATCH=*) ;; *) continue ;; esac
        number=$((number + 1))
        if [ -n "$common" ] && [ "$(plimsoll_common "$line")" != "$common" ]; then
            echo "plimsoll: nothing is set: nodes differ: $common and $(plimsoll_common "$line")" >&2
            return 0
        fi
        common=$(plimsoll_common "$line")
        batch=${line#*PLIMSOLL_MICRO_BATCH=} batch=${batch%% *}
        case $line in *PLIMSOLL_SOURCE=simulated*) simulated=1 ;; esac
        case $line in *PLIMSOLL_STALE=1*) stale=1 ;; esac
        if [ -z "$least" ] || [ "$batch" -lt "$least_batch" ]; then
            least=$line least_batch=$batch
        fi
    done
    if [ "$number" -ne "$nodes" ]; then
        echo "plimsoll: nothing is set: $number of $nodes nodes have an answer" >&2
        return 0
    fi
    plimsoll_export "$least"
    [ -z "$simulated" ] || export PLIMSOLL_SOURCE=simulated
    [ -z "$stale" ] || export PLIMSOLL_STALE=1
}

plimsoll_env() {
    local plimsoll=${PLIMSOLL:-plimsoll} nodes=${SLURM_JOB_NUM_NODES:-1}
    if ! command -v "$plimsoll" >/dev/null 2>&1; then
        echo "plimsoll: nothing is set: there is no $plimsoll" >&2
    elif [ "$nodes" -le 1 ]; then
        plimsoll_export "$("$plimsoll" env "$@" --format dotenv || true)"
    else
        # shellcheck disable=SC2016 # for the shell on the node
        plimsoll_least "$nodes" < <(timeout "${PLIMSOLL_SECONDS:-60}" srun --quiet --overlap --nodes="$nodes" \
            --ntasks="$nodes" --ntasks-per-node=1 \
            bash -c '"$0" env "$@" --format dotenv | tr "\n" " "; echo' "$plimsoll" "$@")
    fi
}
