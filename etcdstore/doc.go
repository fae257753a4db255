package etcdstore
