#!/usr/bin/env bash
# A SLURM whose only node is this machine, for tests; run as root, after: apt-get install slurm-wlm munge
#   one_machine.sh start DIR | stop DIR     then: export SLURM_CONF=DIR/slurm.conf
set -euo pipefail
action=$1 dir=$2 host=$(hostname -s)
if [ "$action" = stop ]; then
    for name in slurmd slurmctld; do
        if [ -f "$dir/$name.pid" ]; then kill "$(cat "$dir/$name.pid")" || true; fi
    done
    exit 0
fi
mkdir -p "$dir"/{state,spool,log} /run/munge
chown munge /run/munge
if ! munge -n >/dev/null 2>&1; then runuser -u munge -- /usr/sbin/munged; fi
cat >"$dir/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=8000 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF=$dir/slurm.conf
slurmctld -i
slurmd
for _ in $(seq 40); do
    if sinfo -h -t idle 2>/dev/null | grep -q .; then exit 0; fi
    sleep 0.5
done
echo "SLURM does not start, see $dir/log" >&2
exit 1
