"""Control plane: etcd, kube-apiserver, controllers, scheduler and KWOK as local processes."""
