{{/* What the schema cannot say. Each refusal names the value, what is allowed, and the way out. */}}

{{- define "everlog.checks" -}}
{{- include "everlog.checkMode" . -}}
{{- include "everlog.checkConfig" . -}}
{{- include "everlog.checkSecrets" . -}}
{{- include "everlog.checkMemory" . -}}
{{- include "everlog.checkClaims" . -}}
{{- include "everlog.checkExports" . -}}
{{- end -}}

{{- define "everlog.checkMode" -}}
{{- $brokers := .Values.config.kafka.bootstrap_servers -}}
{{- if eq .Values.mode "embedded" -}}
  {{- if gt (int .Values.replicas) 1 -}}
    {{- fail (printf "replicas: %d with mode: embedded: an embedded log has one node; set replicas: 1, or mode: kafka" (int .Values.replicas)) -}}
  {{- end -}}
  {{- if $brokers -}}
    {{- fail "config.kafka.bootstrap_servers is set with mode: embedded; set mode: kafka, or leave it empty" -}}
  {{- end -}}
  {{- if not .Values.persistence.enabled -}}
    {{- fail "persistence.enabled: false with mode: embedded: the claim is the data" -}}
  {{- end -}}
{{- else -}}
  {{- if not $brokers -}}
    {{- fail "config.kafka.bootstrap_servers is empty; set it, such as broker-1:9092,broker-2:9092, or mode: embedded with replicas: 1" -}}
  {{- end -}}
  {{- $groups := ceil (divf .Values.config.kafka.partitions .Values.config.kafka.group_partitions) | int -}}
  {{- if gt (int .Values.replicas) $groups -}}
    {{- fail (printf "replicas: %d, but config.kafka.partitions / config.kafka.group_partitions are %d groups, and a node without a group is never ready; at most replicas: %d" (int .Values.replicas) $groups $groups) -}}
  {{- end -}}
  {{- if and (not .Values.persistence.enabled) (ne (dig "cluster" "replicas" 0 .Values.config | int) 1) -}}
    {{- fail "persistence.enabled: false restores all rows at each start; it takes config.cluster.replicas: 1, so that another node has them" -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* What the chart sets is refused in `config`, where it would be overwritten. */}}
{{- define "everlog.checkConfig" -}}
{{- $owned := dict
  "server.name" "the name of the pod"
  "server.address" "listenAddress"
  "server.metrics_address" "listenAddress"
  "server.data_dir" "persistence"
  "http.address" "http.enabled"
  "tls.certificate_file" "tls.gateway"
  "tls.key_file" "tls.gateway"
  "tls.client_ca_file" "tls.gateway.clientCaSecret"
  "auth.api_keys_file" "auth.apiKeysSecret"
  "auth.rules_file" "auth.rulesSecret"
  "auth.jwks_ca_file" "auth.jwksCa"
  "tokens.key_file" "tokens.secret"
  "kafka.properties_file" "kafka.propertiesSecret"
  "cluster.address" "listenAddress"
  "cluster.advertised" "the name of the pod"
  "cluster.secret_file" "nodeSecret"
  "cluster.certificate_file" "tls.nodes"
  "cluster.key_file" "tls.nodes"
  "cluster.ca_file" "tls.nodes" -}}
{{- range $section, $keys := .Values.config -}}
  {{- range $key, $_ := $keys -}}
    {{- with get $owned (printf "%s.%s" $section $key) -}}
      {{- fail (printf "config.%s.%s is set by the chart, from %s" $section $key .) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range .Values.config.kafka.properties -}}
  {{- if regexMatch "^[^=]*(password|passphrase|secret|key\\.pem)[^=]*=" . -}}
    {{- fail (printf "config.kafka.properties has %s, which would stand in a ConfigMap; put it into the Secret of kafka.propertiesSecret" (regexFind "^[^=]*" .)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "everlog.checkSecrets" -}}
{{- range $part, $login := dict "kafka" .Values.kafka "topics" .Values.topics -}}
  {{- if and $login.sasl.passwordSecret.name (not $login.sasl.username) -}}
    {{- fail (printf "%s.sasl.username is empty, and %s.sasl.passwordSecret.name is not" $part $part) -}}
  {{- end -}}
  {{- if and $login.sasl.username (not $login.sasl.passwordSecret.name) -}}
    {{- fail (printf "%s.sasl.passwordSecret.name is empty, and %s.sasl.username is not" $part $part) -}}
  {{- end -}}
{{- end -}}
{{- range $part, $tls := .Values.tls -}}
  {{- if and $tls.enabled (not $tls.secretName) (not $tls.certManager.enabled) -}}
    {{- fail (printf "tls.%s.enabled takes tls.%s.secretName, or tls.%s.certManager.enabled" $part $part $part) -}}
  {{- end -}}
  {{- if and $tls.certManager.enabled (not $tls.enabled) -}}
    {{- fail (printf "tls.%s.certManager.enabled takes tls.%s.enabled" $part $part) -}}
  {{- end -}}
  {{- if and $tls.certManager.enabled (not $tls.certManager.issuerRef) -}}
    {{- fail (printf "tls.%s.certManager.issuerRef is empty; set its name and kind" $part) -}}
  {{- end -}}
{{- end -}}
{{- $shown := dig "tls" "client_certificates" "none" .Values.config -}}
{{- if and (ne $shown "none") (not .Values.tls.gateway.clientCaSecret.name) -}}
  {{- fail (printf "config.tls.client_certificates: %s takes tls.gateway.clientCaSecret.name" $shown) -}}
{{- end -}}
{{- end -}}

{{/* Seven tenths of the limit must hold what the node takes for good. A dead node's partitions go to the others, so each of
them may have all. */}}
{{- define "everlog.checkMemory" -}}
{{- with dig "limits" "memory" "" .Values.resources -}}
  {{- $config := $.Values.config -}}
  {{- $partitions := $config.kafka.partitions -}}
  {{- if eq $.Values.mode "embedded" }}{{ $partitions = dig "log" "partitions" 8 $config }}{{ end -}}
  {{- $taken := addf (dig "memory" "database_bytes" 268435456 $config) (dig "memory" "uncommitted_bytes_max" 67108864 $config) 350e6 (mulf 1e6 $partitions) -}}
  {{- if gt $taken (mulf 0.7 (include "everlog.bytes" .)) -}}
    {{- fail (printf "resources.limits.memory: %v is too small: config.memory, 350 MB and %v partitions need at least %.0fMi" . $partitions (ceil (divf $taken 734003.2))) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* What an API server would refuse without the way out. Without a cluster nothing is found. */}}
{{- define "everlog.checkClaims" -}}
{{- if .Values.persistence.enabled -}}
  {{- range dig "spec" "volumeClaimTemplates" list (lookup "apps/v1" "StatefulSet" .Release.Namespace (include "everlog.fullname" .)) -}}
    {{- $size := toString .spec.resources.requests.storage -}}
    {{- if ne (include "everlog.bytes" $size) (include "everlog.bytes" $.Values.persistence.size) -}}
      {{- fail (printf "persistence.size: %v, but the StatefulSet has claims of %s, which an upgrade cannot change; docs/kubernetes.md has the way: Larger claims" $.Values.persistence.size $size) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* everlog.bytes: a quantity of Kubernetes as a number. */}}
{{- define "everlog.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := regexFind "[A-Za-z]*$" (toString .) -}}
{{- mulf (trimSuffix $unit (toString .) | float64) (get $units $unit) -}}
{{- end -}}

{{- define "everlog.checkExports" -}}
{{- if .Values.exports.enabled -}}
  {{- if not .Values.exports.claimName -}}
    {{- fail "exports.claimName is empty; name a claim of this namespace that has room for exports.keep + 1 exports" -}}
  {{- end -}}
  {{- if and (eq .Values.mode "embedded") (has "ReadWriteOncePod" .Values.persistence.accessModes) -}}
    {{- fail "exports.enabled with mode: embedded and persistence.accessModes: [ReadWriteOncePod]: the export mounts the claim of the node; use ReadWriteOnce" -}}
  {{- end -}}
{{- end -}}
{{- end -}}
