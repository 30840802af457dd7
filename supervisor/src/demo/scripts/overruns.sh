# Ignores every polite request, and leaves grandchildren behind in sessions of their own.
trap '' TERM HUP INT
stay='echo up; exec > /dev/null 2>&1; while :; do sleep 600; done'
{ for n in 1 2 3; do (supervisor __probe detach sh -c "$stay" &); done; } | { read -r _; read -r _; read -r _; }
supervisor heartbeat --note 'three grandchildren are up'
while :; do sleep 600; done
