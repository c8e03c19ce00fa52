# What the hooks share; sourced by them. A hook never fails and takes no more than a second: what it
# cannot know in that time is not set.
#
# Settings: NAME=value lines in hooks.conf beside the hooks, read only where it is root's alone,
# or, of TaskProlog, the user's own.
#   PLIMSOLL   the program                           (/usr/local/bin/plimsoll, else /usr/bin/plimsoll)
#   ARGUMENTS  what env is asked, a word a line      (/etc/plimsoll/hook.args)
#   STORE      the site's store                      (/etc/plimsoll/store)
#   HANDOVER   from Prolog to TaskProlog, by job id  (/run/plimsoll-jobs)
#   SECONDS_AT_MOST                                  (1)

PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
hooks=${BASH_SOURCE[0]%/*}

# Is it there, no link, root's, and writable by root alone, as are all folders above it? Names in a
# folder with the sticky bit are their owners'.
is_roots() {
    local path=$1 first=1 owner mode kind
    case $path in /*) ;; *) return 1 ;; esac
    while :; do
        read -r owner mode kind < <(stat -c '%u %a %F' -- "${path:-/}" 2>/dev/null) || return 1
        [ "$owner" = 0 ] && [ "$kind" != 'symbolic link' ] || return 1
        if [ $((8#$mode & 8#022)) -ne 0 ]; then
            [ -z "$first" ] && [ $((8#$mode & 8#1000)) -ne 0 ] || return 1
        fi
        [ -n "$path" ] || return 0
        path=${path%/*} first=
    done
}

PLIMSOLL=/usr/local/bin/plimsoll
[ -x "$PLIMSOLL" ] || PLIMSOLL=/usr/bin/plimsoll
ARGUMENTS=/etc/plimsoll/hook.args
STORE=/etc/plimsoll/store
HANDOVER=/run/plimsoll-jobs
SECONDS_AT_MOST=1
if is_roots "$hooks/hooks.conf" || { [ "$EUID" != 0 ] && [ -O "$hooks/hooks.conf" ]; }; then
    while IFS='=' read -r name value; do
        case $name in
        PLIMSOLL | ARGUMENTS | STORE | HANDOVER | SECONDS_AT_MOST) printf -v "$name" %s "$value" ;;
        esac
    done <"$hooks/hooks.conf"
fi

# Runs a command for at most so many seconds; what it printed is in `answer`, nothing where it took longer.
# It holds none of the hook's streams, so that whoever waits for them does not wait for it.
ask() {
    local seconds=$1 status
    shift
    answer=
    IFS= read -r -d '' -t "$seconds" answer < <(exec "$@" 2>/dev/null </dev/null)
    status=$?
    if [ $status -gt 128 ]; then
        kill -KILL $! 2>/dev/null
        answer=
    fi
    return 0
}
