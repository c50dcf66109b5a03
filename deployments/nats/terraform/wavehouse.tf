# Made by:
#   wavehouse mq manifests --partitions=4 --shards=8 --prefix=wh --replicas=3 --file-store=100Gi --format=terraform
# Do not edit: change the command and run it again. `wavehouse mq plan` shows what would change.
#
# Partitions: WH_INGEST_0 to WH_INGEST_3
# Durables on each: wh-ingest-0 to wh-ingest-7
# History: WH_HISTORY. Dead letters: WH_DLQ. Leases: bucket wh_coord.
# Reserved on each server that holds a copy: 75Gi of a file store of 100Gi.
# The history keeps 15m: no less than a client may be away (--history-max-age).
# Give the provider its servers and credentials in a file of your own.

terraform {
  required_providers {
    jetstream = {
      source  = "nats-io/jetstream"
      version = "> 0.2.1"
    }
  }
}

resource "jetstream_stream" "ingest_0" {
  name                    = "WH_INGEST_0"
  subjects                = ["wh.ingest.0.>"]
  retention               = "workqueue"
  discard                 = "new"
  discard_new_per_subject = true
  max_bytes               = 16106127360
  max_msgs_per_subject    = 200000
  max_age                 = 0
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 120
  allow_direct            = false
  allow_rollup_hdrs       = false
  deny_delete             = true
  deny_purge              = true
  republish_source        = "wh.ingest.0.*.>"
  republish_destination   = "wh.hist.>"

  metadata = {
    "wavehouse.dev/partition"  = "0"
    "wavehouse.dev/partitions" = "4"
    "wavehouse.dev/shards"     = "8"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_0" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-0"
  filter_subject   = "wh.ingest.0.0.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_1" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-1"
  filter_subject   = "wh.ingest.0.1.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_2" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-2"
  filter_subject   = "wh.ingest.0.2.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_3" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-3"
  filter_subject   = "wh.ingest.0.3.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_4" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-4"
  filter_subject   = "wh.ingest.0.4.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_5" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-5"
  filter_subject   = "wh.ingest.0.5.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_6" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-6"
  filter_subject   = "wh.ingest.0.6.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_0_7" {
  stream_id        = jetstream_stream.ingest_0.id
  durable_name     = "wh-ingest-7"
  filter_subject   = "wh.ingest.0.7.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_stream" "ingest_1" {
  name                    = "WH_INGEST_1"
  subjects                = ["wh.ingest.1.>"]
  retention               = "workqueue"
  discard                 = "new"
  discard_new_per_subject = true
  max_bytes               = 16106127360
  max_msgs_per_subject    = 200000
  max_age                 = 0
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 120
  allow_direct            = false
  allow_rollup_hdrs       = false
  deny_delete             = true
  deny_purge              = true
  republish_source        = "wh.ingest.1.*.>"
  republish_destination   = "wh.hist.>"

  metadata = {
    "wavehouse.dev/partition"  = "1"
    "wavehouse.dev/partitions" = "4"
    "wavehouse.dev/shards"     = "8"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_0" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-0"
  filter_subject   = "wh.ingest.1.0.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_1" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-1"
  filter_subject   = "wh.ingest.1.1.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_2" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-2"
  filter_subject   = "wh.ingest.1.2.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_3" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-3"
  filter_subject   = "wh.ingest.1.3.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_4" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-4"
  filter_subject   = "wh.ingest.1.4.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_5" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-5"
  filter_subject   = "wh.ingest.1.5.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_6" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-6"
  filter_subject   = "wh.ingest.1.6.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_1_7" {
  stream_id        = jetstream_stream.ingest_1.id
  durable_name     = "wh-ingest-7"
  filter_subject   = "wh.ingest.1.7.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_stream" "ingest_2" {
  name                    = "WH_INGEST_2"
  subjects                = ["wh.ingest.2.>"]
  retention               = "workqueue"
  discard                 = "new"
  discard_new_per_subject = true
  max_bytes               = 16106127360
  max_msgs_per_subject    = 200000
  max_age                 = 0
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 120
  allow_direct            = false
  allow_rollup_hdrs       = false
  deny_delete             = true
  deny_purge              = true
  republish_source        = "wh.ingest.2.*.>"
  republish_destination   = "wh.hist.>"

  metadata = {
    "wavehouse.dev/partition"  = "2"
    "wavehouse.dev/partitions" = "4"
    "wavehouse.dev/shards"     = "8"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_0" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-0"
  filter_subject   = "wh.ingest.2.0.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_1" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-1"
  filter_subject   = "wh.ingest.2.1.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_2" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-2"
  filter_subject   = "wh.ingest.2.2.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_3" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-3"
  filter_subject   = "wh.ingest.2.3.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_4" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-4"
  filter_subject   = "wh.ingest.2.4.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_5" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-5"
  filter_subject   = "wh.ingest.2.5.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_6" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-6"
  filter_subject   = "wh.ingest.2.6.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_2_7" {
  stream_id        = jetstream_stream.ingest_2.id
  durable_name     = "wh-ingest-7"
  filter_subject   = "wh.ingest.2.7.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_stream" "ingest_3" {
  name                    = "WH_INGEST_3"
  subjects                = ["wh.ingest.3.>"]
  retention               = "workqueue"
  discard                 = "new"
  discard_new_per_subject = true
  max_bytes               = 16106127360
  max_msgs_per_subject    = 200000
  max_age                 = 0
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 120
  allow_direct            = false
  allow_rollup_hdrs       = false
  deny_delete             = true
  deny_purge              = true
  republish_source        = "wh.ingest.3.*.>"
  republish_destination   = "wh.hist.>"

  metadata = {
    "wavehouse.dev/partition"  = "3"
    "wavehouse.dev/partitions" = "4"
    "wavehouse.dev/shards"     = "8"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_0" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-0"
  filter_subject   = "wh.ingest.3.0.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_1" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-1"
  filter_subject   = "wh.ingest.3.1.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_2" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-2"
  filter_subject   = "wh.ingest.3.2.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_3" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-3"
  filter_subject   = "wh.ingest.3.3.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_4" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-4"
  filter_subject   = "wh.ingest.3.4.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_5" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-5"
  filter_subject   = "wh.ingest.3.5.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_6" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-6"
  filter_subject   = "wh.ingest.3.6.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_consumer" "ingest_3_7" {
  stream_id        = jetstream_stream.ingest_3.id
  durable_name     = "wh-ingest-7"
  filter_subject   = "wh.ingest.3.7.>"
  deliver_all      = true
  ack_policy       = "explicit"
  ack_wait         = 60
  max_delivery     = -1
  max_ack_pending  = 100000
  max_waiting      = 512
  replay_policy    = "instant"
  priority_policy  = "pinned_client"
  priority_groups  = ["wavehouse"]
  priority_timeout = 10

  lifecycle {
    prevent_destroy = true
  }
}

resource "jetstream_stream" "history" {
  name                    = "WH_HISTORY"
  subjects                = ["wh.hist.>"]
  retention               = "limits"
  discard                 = "old"
  discard_new_per_subject = false
  max_bytes               = 10737418240
  max_msgs_per_subject    = -1
  max_age                 = 900
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 120
  allow_direct            = true
  allow_rollup_hdrs       = false
  deny_delete             = false
  deny_purge              = false
}

resource "jetstream_stream" "dead_letters" {
  name                    = "WH_DLQ"
  subjects                = ["wh.dlq.>"]
  retention               = "limits"
  discard                 = "old"
  discard_new_per_subject = false
  max_bytes               = 5368709120
  max_msgs_per_subject    = 100000
  max_age                 = 0
  storage                 = "file"
  replicas                = 3
  duplicate_window        = 3600
  allow_direct            = true
  allow_rollup_hdrs       = false
  deny_delete             = false
  deny_purge              = false
}

resource "jetstream_kv_bucket" "coord" {
  name     = "wh_coord"
  history  = 1
  ttl      = 0
  replicas = 3
}
