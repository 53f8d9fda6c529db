//! Words that the language knows, lower-cased: they may not be written in another way, or not without backquotes.

/// Reserved: they are names only between backquotes.
const RESERVED: &str = "\
    _binary add all alter analyze and as asc auto_increment between binary boolean by case cast collate column constraint \
    convert create cross current_date current_time current_timestamp database databases default delete desc describe \
    distinct div drop else end escape exists explain extended false for force from full group group_concat having if \
    ignore in index inner insert interval into is join key left like limit localtime localtimestamp lock match maxvalue \
    mod natural next not null on or order outer processlist regexp rename replace right rlike schema select separator set \
    show sql_cache sql_no_cache starts_with straight_join stream substr substring table tables then to true union unique \
    update use using utc_date utc_time utc_timestamp values when where";

/// Known, and names all the same. Messages show them lower-cased, and printed names stand in backquotes.
const SOFT: &str = "\
    accessible against asensitive before begin bigint bit blob bool both call cascade change char character charset check \
    comment commit committed condition continue current_user cursor date datetime day_hour day_microsecond day_minute \
    day_second dec decimal declare delayed deterministic distinctrow double duplicate each elseif enclosed enum escaped \
    exit expansion fetch float float4 float8 foreign fulltext generated geometry geometrycollection get global grant \
    high_priority hour_microsecond hour_minute hour_second infile inout insensitive int int1 int2 int3 int4 int8 integer \
    io_after_gtids isolation iterate json key_block_size keys kill language last_insert_id leading leave less level linear \
    lines linestring load long longblob longtext loop low_priority master_bind mediumblob mediumint mediumtext middleint \
    minute_microsecond minute_second mode modifies multilinestring multipoint multipolygon names nchar no_write_to_binlog \
    numeric offset only optimize optimizer_costs option optionally out outfile partition point polygon precision primary \
    procedure query range read read_write reads real references release reorganize repair repeat repeatable require \
    resignal restrict return revoke rollback schemas second_microsecond sensitive serializable session share signal signed \
    smallint spatial specific sql sql_big_result sql_calc_found_rows sql_small_result sqlexception sqlstate sqlwarning ssl \
    start starting status stored terminated text than time timestamp tinyblob tinyint tinytext trailing transaction \
    trigger truncate uncommitted undo unlock unsigned usage varbinary varchar varcharacter variables varying view vindex \
    vindexes virtual vitess_keyspaces vitess_shards vitess_tablets vschema_tables while with write xor year year_month \
    zerofill";

/// How a bare word may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordClass {
    /// A name.
    Name,
    /// A name, which messages show lower-cased.
    Soft,
    /// No name.
    Reserved,
}

/// The class of a word, whatever its case.
pub(super) fn class(word: &str) -> WordClass {
    let stands_in = |list: &str| list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word));
    if stands_in(RESERVED) {
        WordClass::Reserved
    } else if stands_in(SOFT) {
        WordClass::Soft
    } else {
        WordClass::Name
    }
}
