# Two hosts on one machine, for tests under mpirun: network namespaces with a
# bridge between them and their own names, by which MPI distinguishes hosts.
# Needs root. Sourced; needs $dir, a directory of the test.
#
#	hosts_up || ...		$hosts: arguments for mpirun
#	hosts_down		always, from a trap

# Not the process id: a container on this machine may use the same.
hosts_number=$((RANDOM % 25000))
hosts_id=pw$hosts_number
hosts_net=10.$((100 + hosts_number / 250)).$((hosts_number % 250))

# Only names of this test: leftovers outlive the test.
hosts_down() {
	local i
	for i in 1 2; do
		ip netns del "$hosts_id-$i" 2>/dev/null || true
		ip link del "$hosts_id-v$i" 2>/dev/null || true
	done
	ip link del "$hosts_id-b" 2>/dev/null || true
}

hosts_add() {
	local ns=$hosts_id-$1 v=$hosts_id-v$1
	ip netns add "$ns" &&
		ip link add "$v" type veth peer name eth0 netns "$ns" &&
		ip link set "$v" master "$hosts_id-b" up &&
		ip -n "$ns" addr add "$hosts_net.$1/24" dev eth0 &&
		ip -n "$ns" link set eth0 up &&
		ip -n "$ns" link set lo up || return 1
	# as bridges of containers are: the same on every host; and a network
	# that only this one is in
	ip -n "$ns" link add docker0 type bridge &&
		ip -n "$ns" addr add 172.30.0.1/16 dev docker0 &&
		ip -n "$ns" addr add "10.8$1.0.1/24" dev docker0 &&
		ip -n "$ns" link set docker0 up
}

hosts_up() {
	[ "$(id -u)" = 0 ] && command -v ip >/dev/null || return 1
	ip link add "$hosts_id-b" type bridge &&
		ip addr add "$hosts_net.254/24" dev "$hosts_id-b" &&
		ip link set "$hosts_id-b" up &&
		hosts_add 1 && hosts_add 2 || return 1
	cat >"$dir/agent" <<'SH'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
SH
	chmod +x "$dir/agent"
	# shellcheck disable=SC2034 # for who sources this
	hosts=(--mca plm_rsh_agent "$dir/agent"
		-H "$hosts_id-1:2,$hosts_id-2:2"
		--mca oob_tcp_if_include "$hosts_net.0/24"
		--mca btl_tcp_if_include "$hosts_net.0/24"
		--mca mpi_yield_when_idle 1
		-x PENSTOCK_MODULES -x ASAN_OPTIONS)
}
