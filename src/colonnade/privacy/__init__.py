"""Pure integers and curves: what hides a party's share inside a total."""
