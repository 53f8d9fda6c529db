# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_everlog_global_optspecs
    string join \n h/help V/version
end

function __fish_everlog_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_everlog_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_everlog_using_subcommand
    set -l cmd (__fish_everlog_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c everlog -n "__fish_everlog_needs_command" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_needs_command" -s V -l version -d 'Print version'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "dev" -d 'Run a server for development, without any configuration'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "serve" -d 'Run a server with the settings of a file and of the environment'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "config" -d 'Print every setting as `serve` would use it'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "topics" -d 'Create the topics of a log on Kafka, or check them'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "events" -d 'Print the events of workflows, one JSON object a line'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "replies" -d 'Print the outcomes of commands, one JSON object a line'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "rejections" -d 'Print the commands that were refused or cannot be decoded, one JSON object a line'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "command" -d 'Send a command to a workflow'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "schemas" -d 'Register the schemas of the public topics, or check that they are registered'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "cluster" -d 'Show the nodes that share a log on Kafka, drain a node, or move partitions'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "auth" -d 'Make API keys for clients'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "doctor" -d 'Check a log and what it depends on, and print how to repair what is wrong'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "state" -d 'Export all that a log holds into files, and import it into a new log: backup, another count of partitions, another kind of log'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "completions" -d 'Print a script by which a shell completes this command line'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "man" -d 'Write the man pages of all commands into a folder'
complete -c everlog -n "__fish_everlog_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l address -d 'Address for SDKs and the temporal CLI; port 0 picks a free port [default: 127.0.0.1:7233]' -r
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l metrics-address -d 'Address of metrics and health checks; port 0 picks a free port [default: 127.0.0.1:9233]' -r
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l http-address -d 'Address of the schema registry and of commands over HTTP; port 0 picks a free port [default: 127.0.0.1:7234]' -r
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l data-dir -d 'The data directory; created if it is missing [default: ./everlog-data]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l kafka-bootstrap -d 'Keep the log on these brokers; missing topics are created with one replica' -r
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l ephemeral -d 'Use a temporary data directory, which is removed at the end'
complete -c everlog -n "__fish_everlog_using_subcommand dev" -l tls -d 'Speak TLS only, with a certificate that an authority made for this data directory has signed; the banner says how clients trust it'
complete -c everlog -n "__fish_everlog_using_subcommand dev" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand serve" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand config" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand config" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and not __fish_seen_subcommand_from plan create check help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and not __fish_seen_subcommand_from plan create check help" -f -a "plan" -d 'Print what `create` would create, and what differs. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and not __fish_seen_subcommand_from plan create check help" -f -a "create" -d 'Create the missing topics. Existing topics are not changed'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and not __fish_seen_subcommand_from plan create check help" -f -a "check" -d 'Print what differs, what it means and how to repair it. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and not __fish_seen_subcommand_from plan create check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from plan" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from plan" -l kafka-bootstrap -d 'Use these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from plan" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from create" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from create" -l kafka-bootstrap -d 'Use these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from check" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from check" -l kafka-bootstrap -d 'Use these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from help" -f -a "plan" -d 'Print what `create` would create, and what differs. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from help" -f -a "create" -d 'Create the missing topics. Existing topics are not changed'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from help" -f -a "check" -d 'Print what differs, what it means and how to repair it. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand topics; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand events; and not __fish_seen_subcommand_from tail export help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand events; and not __fish_seen_subcommand_from tail export help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand events; and not __fish_seen_subcommand_from tail export help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand events; and not __fish_seen_subcommand_from tail export help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -l from-beginning -d 'Print old records first'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -l follow -d 'Continue with new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand events; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and not __fish_seen_subcommand_from tail export help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and not __fish_seen_subcommand_from tail export help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and not __fish_seen_subcommand_from tail export help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and not __fish_seen_subcommand_from tail export help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -l from-beginning -d 'Print old records first'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -l follow -d 'Continue with new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand replies; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and not __fish_seen_subcommand_from tail export help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and not __fish_seen_subcommand_from tail export help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and not __fish_seen_subcommand_from tail export help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and not __fish_seen_subcommand_from tail export help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -l from-beginning -d 'Print old records first'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l format -d 'How records are printed' -r -f -a "json\t'One JSON object a line, with all fields'
table\t'A row of id, time, type and the fields that matter'"
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l namespace -d 'Only records of this namespace' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l workflow-id -d 'Only records of this Workflow Id' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l run-id -d 'Only records of this run' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l type -d 'Only records of this type; may be repeated' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l partition -d 'Only records of this partition of the topic' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l from-offset -d 'Start at this offset of the partition' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l limit -d 'Stop after this number of lines' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l registry -d 'The schema registry with the schemas of other releases [default: registry.url, else the node\'s]' -r
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -l follow -d 'Continue with new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from help" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from help" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand rejections; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand command; and not __fish_seen_subcommand_from send help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand command; and not __fish_seen_subcommand_from send help" -f -a "send" -d 'Send a command to the topic `commands`'
complete -c everlog -n "__fish_everlog_using_subcommand command; and not __fish_seen_subcommand_from send help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l workflow-id -d 'The Workflow Id, which is the key of the record' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l namespace -d 'The namespace [default: the node\'s default namespace]' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l command-id -d 'The id of the command; it is executed once, however often it is sent' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l deliver-at -d 'Do not execute it before this time: milliseconds since 1970, or from now: +30s, +5m, +2h, +7d' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l reply-timeout-ms -d 'How long to wait for the outcome, in milliseconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l kafka-bootstrap -d 'Use the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l http-address -d 'Use the embedded log of the node that serves HTTP here [default, without brokers: http.address]' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -l reply -d 'Wait for the outcome and print it'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "start" -d 'Start a run'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "signal" -d 'Send a signal to the open run'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "signal-with-start" -d 'Send a signal; start a run first if none is open'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "update" -d 'Send an update to the open run; the outcome has its result'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "update-with-start" -d 'Send an update; start a run first if none is open'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "cancel" -d 'Request the cancellation of the open run'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "terminate" -d 'Terminate the open run at once'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "complete-activity" -d 'Complete an activity with a result'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "fail-activity" -d 'Fail the current attempt of an activity'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "json" -d 'Send a command in JSON from the standard input, as schemas/README.md describes it'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from send" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from help" -f -a "send" -d 'Send a command to the topic `commands`'
complete -c everlog -n "__fish_everlog_using_subcommand command; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and not __fish_seen_subcommand_from register check help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and not __fish_seen_subcommand_from register check help" -f -a "register" -d 'Register the schemas of the public topics that are not registered'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and not __fish_seen_subcommand_from register check help" -f -a "check" -d 'Check that the schemas of the public topics are registered. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and not __fish_seen_subcommand_from register check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -l registry -d 'The registry, which has Confluent\'s API: http://registry:8081 or http://registry:8080/apis/ccompat/v7' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -l prefix -d 'The prefix of the names of the topics [default: kafka.prefix]' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -l timeout-ms -d 'How long to retry while the registry does not answer, in milliseconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from register" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -l registry -d 'The registry, which has Confluent\'s API: http://registry:8081 or http://registry:8080/apis/ccompat/v7' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -l prefix -d 'The prefix of the names of the topics [default: kafka.prefix]' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -l timeout-ms -d 'How long to retry while the registry does not answer, in milliseconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -l ca-file -d 'Trust the authorities in this file of PEM, where the address begins with https:// [default: those of the system]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -l api-key -d 'Send this API key or token; other users of this machine see arguments, but not the variable' -r
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from help" -f -a "register" -d 'Register the schemas of the public topics that are not registered'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check that the schemas of the public topics are registered. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand schemas; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -f -a "status" -d 'Print the nodes, and of each partition its owner, its positions and the progress of a restore'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -f -a "drain" -d 'Move all partitions of a node to the others, and assign none to it from then on'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -f -a "move" -d 'Move the group of a partition to a node, and pin it there while that node lives'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -f -a "upgrade" -d 'Raise the level of decisions, which new behaviour waits for; there is no way back. Without --to-level: print the levels'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and not __fish_seen_subcommand_from status drain move upgrade help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from status" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from status" -l json -d 'Print JSON, one object a line: the nodes, then the partitions, then warnings'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from drain" -l within-s -d 'How long to wait until the node has none, in seconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from drain" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from drain" -l undo -d 'Assign partitions to the node again'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from drain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from move" -l within-s -d 'How long to wait until the node serves the group, in seconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from move" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l to-level -d 'The level' -r
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l within-s -d 'How long to wait until all partitions have the level, in seconds' -r
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l data-dir -d 'The data directory of an embedded log [default: that of the settings]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from upgrade" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "status" -d 'Print the nodes, and of each partition its owner, its positions and the progress of a restore'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "drain" -d 'Move all partitions of a node to the others, and assign none to it from then on'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "move" -d 'Move the group of a partition to a node, and pin it there while that node lives'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "upgrade" -d 'Raise the level of decisions, which new behaviour waits for; there is no way back. Without --to-level: print the levels'
complete -c everlog -n "__fish_everlog_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and not __fish_seen_subcommand_from key help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and not __fish_seen_subcommand_from key help" -f -a "key" -d 'Make an API key. Nothing is stored'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and not __fish_seen_subcommand_from key help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from key" -l name -d 'The name by which log lines call its user; one word' -r
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from key" -l grant -d 'What it may do: read, write, worker or admin in a namespace, or in all of them with the namespace temporal-system' -r
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from key" -l expires -d 'How long it is accepted, in days, hours or minutes, such as 90d, 12h, 30m [default: for ever]' -r
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from key" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from help" -f -a "key" -d 'Make an API key. Nothing is stored'
complete -c everlog -n "__fish_everlog_using_subcommand auth; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l kafka-bootstrap -d 'Check the log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l data-dir -d 'Check the embedded log in this data directory [default, without brokers: server.data_dir]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l registry -d 'Check this schema registry too [default: registry.url]' -r
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l bundle -d 'Write an archive (tar.gz) for a bug report: what is found, settings without secrets, metrics, health, the state of the nodes, versions, and log lines' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l logs -d 'Put the end of this file of log lines into the archive [default: what the system\'s journal has of the unit everlog]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -l json -d 'Print JSON, one object a line'
complete -c everlog -n "__fish_everlog_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand state; and not __fish_seen_subcommand_from export import help" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand state; and not __fish_seen_subcommand_from export import help" -f -a "export" -d 'Write all that a log holds into files of a new directory: a backup, and the way to another log'
complete -c everlog -n "__fish_everlog_using_subcommand state; and not __fish_seen_subcommand_from export import help" -f -a "import" -d 'Make a new log of an export: embedded or on Kafka, with any count of partitions'
complete -c everlog -n "__fish_everlog_using_subcommand state; and not __fish_seen_subcommand_from export import help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l to -d 'The directory of the export; it must not exist, or be empty' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l keep -d 'Of the whole exports of this log in the directory above, keep so many of the newest, and remove the others [default: all stay]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l data-dir -d 'The embedded log in this data directory [default, without brokers: server.data_dir]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l kafka-bootstrap -d 'The log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -l kafka-prefix -d 'What the names of its topics begin with [default: kafka.prefix]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l from -d 'The directory of the export' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l partitions -d 'How many partitions the new log has [default: log.partitions or kafka.partitions]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l config -d 'The file of settings [default: the environment and the defaults only]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l data-dir -d 'The embedded log in this data directory [default, without brokers: server.data_dir]' -r -F
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l kafka-bootstrap -d 'The log on these brokers [default: kafka.bootstrap_servers]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -l kafka-prefix -d 'What the names of its topics begin with [default: kafka.prefix]' -r
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write all that a log holds into files of a new directory: a backup, and the way to another log'
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from help" -f -a "import" -d 'Make a new log of an export: embedded or on Kafka, with any count of partitions'
complete -c everlog -n "__fish_everlog_using_subcommand state; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c everlog -n "__fish_everlog_using_subcommand man" -s h -l help -d 'Print help'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "dev" -d 'Run a server for development, without any configuration'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "serve" -d 'Run a server with the settings of a file and of the environment'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "config" -d 'Print every setting as `serve` would use it'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "topics" -d 'Create the topics of a log on Kafka, or check them'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "events" -d 'Print the events of workflows, one JSON object a line'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "replies" -d 'Print the outcomes of commands, one JSON object a line'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "rejections" -d 'Print the commands that were refused or cannot be decoded, one JSON object a line'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "command" -d 'Send a command to a workflow'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "schemas" -d 'Register the schemas of the public topics, or check that they are registered'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "cluster" -d 'Show the nodes that share a log on Kafka, drain a node, or move partitions'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "auth" -d 'Make API keys for clients'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "doctor" -d 'Check a log and what it depends on, and print how to repair what is wrong'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "state" -d 'Export all that a log holds into files, and import it into a new log: backup, another count of partitions, another kind of log'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "completions" -d 'Print a script by which a shell completes this command line'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "man" -d 'Write the man pages of all commands into a folder'
complete -c everlog -n "__fish_everlog_using_subcommand help; and not __fish_seen_subcommand_from dev serve config topics events replies rejections command schemas cluster auth doctor state completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from topics" -f -a "plan" -d 'Print what `create` would create, and what differs. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from topics" -f -a "create" -d 'Create the missing topics. Existing topics are not changed'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from topics" -f -a "check" -d 'Print what differs, what it means and how to repair it. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from events" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from events" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from replies" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from replies" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from rejections" -f -a "tail" -d 'Print new records until interrupted'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from rejections" -f -a "export" -d 'Print all records'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from command" -f -a "send" -d 'Send a command to the topic `commands`'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from schemas" -f -a "register" -d 'Register the schemas of the public topics that are not registered'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from schemas" -f -a "check" -d 'Check that the schemas of the public topics are registered. Changes nothing'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "status" -d 'Print the nodes, and of each partition its owner, its positions and the progress of a restore'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "drain" -d 'Move all partitions of a node to the others, and assign none to it from then on'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "move" -d 'Move the group of a partition to a node, and pin it there while that node lives'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "upgrade" -d 'Raise the level of decisions, which new behaviour waits for; there is no way back. Without --to-level: print the levels'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from auth" -f -a "key" -d 'Make an API key. Nothing is stored'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from state" -f -a "export" -d 'Write all that a log holds into files of a new directory: a backup, and the way to another log'
complete -c everlog -n "__fish_everlog_using_subcommand help; and __fish_seen_subcommand_from state" -f -a "import" -d 'Make a new log of an export: embedded or on Kafka, with any count of partitions'
