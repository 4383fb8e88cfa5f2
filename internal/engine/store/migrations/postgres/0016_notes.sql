-- From here on transactions may stand in the history without a change of a resource (first and last are -1). Programs before this one take such
-- a transaction for one whose changes are gone, and end what follows the changes there: they are not to work on this database.
SELECT 1;
